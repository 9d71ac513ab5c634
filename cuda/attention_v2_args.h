#pragma once

#include <cstddef>
#include <cstdint>

#include "rhizome/cuda/attention_args.h"

// The arguments of the kernels of attention whose scores are additive-v2, over dense rows of
// float32. C++17, because nvcc compiles it too.

namespace rhizome::cuda {

/// GATv2's attention over whole lists, as AttendArgs of cache/attention_kernels.h with kAdditiveV2
/// and `finish`, with the same bits: for each target and head the sum of x[j], weighted by the
/// softmax over its edges of attention . LeakyReLU(x[j] + query[t]).
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
  bool own = false;  ///< row t of x is the source of a first edge of target t
  Dropout dropout;
  Memory<float> maximum = nullptr;      ///< [targets, heads]
  Memory<float> denominator = nullptr;  ///< [targets, heads]
  Memory<float> out = nullptr;          ///< [targets, heads * width]
};

/// The gradient of the above. Sums over the edges of a source or target are taken in the order of
/// its list, where the processor takes them by chunks of edges: the bits are the same for lists of
/// few edges, and near for others.
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
  std::size_t own = 0;  ///< targets [0, own) have an own edge, from the source of their number
  Dropout dropout;
  Memory<const float> maximum = nullptr;  ///< as the forward pass left them
  Memory<const float> denominator = nullptr;
  Memory<const float> out = nullptr;       ///< [targets, heads * width]
  Memory<const float> gradient = nullptr;  ///< the same, with respect to `out`
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> index = nullptr;
  Memory<const std::uint32_t> turned_offsets = nullptr;  ///< of the transpose, a TurnedCsr
  Memory<const std::uint32_t> target = nullptr;
  Memory<const std::uint32_t> edge = nullptr;

  Memory<float> stats = nullptr;           ///< scratch [targets, heads, 4]
  Memory<float> edge_gradient = nullptr;   ///< scratch [edges, heads]
  Memory<float> own_gradient = nullptr;    ///< scratch [own, heads]
  Memory<float> x_gradient = nullptr;      ///< [sources, heads * width]
  Memory<float> query_gradient = nullptr;  ///< [targets, heads * width]

  /// Sums over edges of the score's gradient times the derivative of LeakyReLU: [sources, heads *
  /// width] and [targets, heads * width].
  Memory<float> x_slopes = nullptr;
  Memory<float> query_slopes = nullptr;
};

using AttendV2Args = AttendV2ArgsOf<plain::Mem>;
using AttendV2GradientArgs = AttendV2GradientArgsOf<plain::Mem>;

}  // namespace rhizome::cuda
