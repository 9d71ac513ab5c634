#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/kernel_args.h"

// Arguments of the kernels for attention and for the activation after a layer. They are the device
// counterparts of cache/kernels/attention_kernels.h and ActivateArgs; results are bit-identical.
// C++17, because nvcc compiles this header too.

namespace rhizome::cuda {

/// Selects the values that are dropped, as AttendDropout and ActivateArgs do. dropped = 0 disables
/// dropout.
struct Dropout {
  std::uint32_t dropped = 0;
  float scale = 1;
  std::uint64_t seed = 0;
  std::uint64_t first_row = 0;  ///< number of the first row or target
};

/// Attention with additive scores (GAT) over whole lists, as AttendArgs with `finish`: for each
/// target and head, the sum of x[j] weighted by the softmax over the target's edges of
/// LeakyReLU(source[j] + query[t]). Strides are in elements.
template <template <typename> class Memory>
struct AttendArgsOf {
  Element type = Element::kFloat32;
  Memory<const unsigned char> x = nullptr;  ///< rows of heads * width columns
  std::size_t x_stride = 0;
  std::size_t heads = 1;
  std::size_t width = 0;  ///< columns of a head
  std::size_t targets = 0;
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> index = nullptr;
  Memory<const float> source = nullptr;  ///< [sources, heads]
  Memory<const float> query = nullptr;   ///< [targets, heads]
  float slope = 0;
  bool own = false;  ///< target t has a self-loop as its first edge, from row t of x
  Dropout dropout;
  Memory<float> maximum = nullptr;      ///< [targets, heads]
  Memory<float> denominator = nullptr;  ///< [targets, heads]
  Memory<float> out = nullptr;          ///< [targets, heads * width]
};

/// Gradient of AttendArgsOf, as AttendGradientArgs. Rows are dense and float32.
template <template <typename> class Memory>
struct AttendGradientArgsOf {
  std::size_t heads = 1;
  std::size_t width = 0;
  std::size_t sources = 0;
  std::size_t targets = 0;
  Memory<const float> x = nullptr;       ///< [sources, heads * width]
  Memory<const float> source = nullptr;  ///< [sources, heads]
  Memory<const float> query = nullptr;   ///< [targets, heads]
  float slope = 0;
  std::size_t own = 0;  ///< targets [0, own) have a self-loop, from the source with the same number
  Dropout dropout;
  Memory<const float> maximum = nullptr;  ///< as the forward pass wrote them
  Memory<const float> denominator = nullptr;
  Memory<const float> out = nullptr;       ///< [targets, heads * width]
  Memory<const float> gradient = nullptr;  ///< with respect to `out`, same shape
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> transposed_offsets =
      nullptr;  ///< of the transposed lists (TransposedCsr)
  Memory<const std::uint32_t> target = nullptr;
  Memory<const std::uint32_t> edge = nullptr;

  /// Scratch [targets, heads, 4]: maximum, 1 / denominator, out . gradient, query.
  Memory<float> stats = nullptr;
  Memory<float> edge_gradient = nullptr;    ///< scratch [edges, heads]
  Memory<float> own_gradient = nullptr;     ///< scratch [own, heads]
  Memory<float> x_gradient = nullptr;       ///< [sources, heads * width]
  Memory<float> source_gradient = nullptr;  ///< [sources, heads]
  Memory<float> query_gradient = nullptr;   ///< [targets, heads]
};

/// As ActivateArgs, over dense rows. `in` and `out` may be the same array.
template <template <typename> class Memory>
struct ActivateArgsOf {
  Memory<const float> in = nullptr;
  std::size_t rows = 0;
  std::size_t dim = 0;
  bool relu = false;
  Dropout dropout;
  Memory<float> out = nullptr;
};

/// As ActivateGradientArgs, over `count` numbers.
template <template <typename> class Memory>
struct ActivateGradientArgsOf {
  Memory<const float> result = nullptr;
  Memory<const float> gradient = nullptr;
  std::size_t count = 0;
  float scale = 1;
  Memory<float> out = nullptr;
};

using AttendArgs = AttendArgsOf<plain::Mem>;
using AttendGradientArgs = AttendGradientArgsOf<plain::Mem>;
using ActivateArgs = ActivateArgsOf<plain::Mem>;
using ActivateGradientArgs = ActivateGradientArgsOf<plain::Mem>;

}  // namespace rhizome::cuda
