#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention_args.h"

// Arguments of the GATv2 attention kernels, over dense float32 rows. C++17, because nvcc compiles
// this header too.

namespace rhizome::cuda {

/// GATv2 attention over whole lists, as AttendArgs of cache/kernels/attention_kernels.h with kGatv2
/// and `finish`, with bit-identical results: for each target and head, the sum of x[j] weighted by
/// the softmax over the target's edges of attention . LeakyReLU(x[j] + query[t]).
template <template <typename> class Memory>
struct AttendV2ArgsOf {
  std::size_t heads = 1;
  std::size_t width = 0;  ///< columns of a head
  std::size_t targets = 0;
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> index = nullptr;
  Memory<const float> x = nullptr;          ///< [sources, heads * width]
  Memory<const float> query = nullptr;      ///< [targets, heads * width]
  Memory<const float> attention = nullptr;  ///< [heads, width]
  float slope = 0;
  bool own = false;  ///< target t has a self-loop as its first edge, from row t of x
  Dropout dropout;
  Memory<float> maximum = nullptr;      ///< [targets, heads]
  Memory<float> denominator = nullptr;  ///< [targets, heads]
  Memory<float> out = nullptr;          ///< [targets, heads * width]
};

/// Gradient of AttendV2ArgsOf. Sums over the edges of a source or target are accumulated in list
/// order, while the CPU accumulates them by chunks of edges: the bits are equal for short lists,
/// and the values close for others.
///
/// The gradient of `attention` is the sum over all rows of x * x_slopes and query * query_slopes,
/// because LeakyReLU(s) is s times its derivative.
template <template <typename> class Memory>
struct AttendV2GradientArgsOf {
  std::size_t heads = 1;
  std::size_t width = 0;
  std::size_t sources = 0;
  std::size_t targets = 0;
  Memory<const float> x = nullptr;          ///< [sources, heads * width]
  Memory<const float> query = nullptr;      ///< [targets, heads * width]
  Memory<const float> attention = nullptr;  ///< [heads, width]
  float slope = 0;
  std::size_t own = 0;  ///< targets [0, own) have a self-loop, from the source with the same number
  Dropout dropout;
  Memory<const float> maximum = nullptr;  ///< as the forward pass wrote them
  Memory<const float> denominator = nullptr;
  Memory<const float> out = nullptr;       ///< [targets, heads * width]
  Memory<const float> gradient = nullptr;  ///< with respect to `out`, same shape
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> index = nullptr;
  Memory<const std::uint32_t> transposed_offsets =
      nullptr;  ///< of the transposed lists (TransposedCsr)
  Memory<const std::uint32_t> target = nullptr;
  Memory<const std::uint32_t> edge = nullptr;

  Memory<float> stats = nullptr;           ///< scratch [targets, heads, 4]
  Memory<float> edge_gradient = nullptr;   ///< scratch [edges, heads]
  Memory<float> own_gradient = nullptr;    ///< scratch [own, heads]
  Memory<float> x_gradient = nullptr;      ///< [sources, heads * width]
  Memory<float> query_gradient = nullptr;  ///< [targets, heads * width]

  /// Sums over edges of the gradient of the score times the derivative of LeakyReLU: [sources,
  /// heads * width] and [targets, heads * width].
  Memory<float> x_slopes = nullptr;
  Memory<float> query_slopes = nullptr;
};

using AttendV2Args = AttendV2ArgsOf<plain::Mem>;
using AttendV2GradientArgs = AttendV2GradientArgsOf<plain::Mem>;

}  // namespace rhizome::cuda
