#pragma once

#include <cstddef>
#include <cstdint>

// Interface of the products of rows and weights. It follows the rules of aggregate_kernels.h with
// one exception: a product and the following sum are one fused multiply-add, rounded once. All sets
// give the same bits, because numbers are added in the order of columns, or of rows, for every
// vector width.
//
// These kernels exist because no library multiplies rows that are scattered over a cache. They read
// the rows in place, without a copy, and prefetch the next rows concurrently.

namespace rhizome {
inline namespace internal {

/// Number of weight columns that are read together as one panel. A weight matrix [out, in] is
/// stored as panels [ceil(out / kPanel), in, kPanel]; in the last panel, columns beyond `out` may
/// hold anything.
inline constexpr std::size_t kPanel = 16;
constexpr std::size_t PanelsOf(std::size_t out) { return (out + kPanel - 1) / kPanel; }

/// Rows of `columns` floats: row i is x + (place == nullptr ? i : place[i]) * stride.
struct ProductRows {
  const float* x = nullptr;
  std::size_t stride = 0;
  std::size_t columns = 0;
  const std::uint32_t* place = nullptr;
};

/// out[i, o] = bias[o] + sum over k, in order and from zero, of rows[i, k] * weight[o, k]; without
/// `bias` the sum alone.
struct ProductArgs {
  ProductRows rows;
  const float* panels = nullptr;  ///< weight, [out, rows.columns], in panels
  const float* bias = nullptr;    ///< [out], or null
  std::size_t outputs = 0;
  float* out = nullptr;
  std::size_t out_stride = 0;
};

/// sum[o, k] = sum over i in [begin, end), in order, of gradient[i, o] * rows[i, k]: the gradient
/// of weights, in panels. With `keep` it starts from the contents of `sum` instead of zero.
struct ProductGradientArgs {
  ProductRows rows;
  const float* gradient = nullptr;  ///< [end, outputs]
  std::size_t outputs = 0;
  bool keep = false;
  float* sum = nullptr;  ///< panels
};

/// A set of kernels for rows [begin, end), which should be few enough to fit in the L2 cache.
struct ProductKernels {
  void (*multiply)(const ProductArgs&, std::size_t begin, std::size_t end);
  void (*gradient)(const ProductGradientArgs&, std::size_t begin, std::size_t end);
};

extern const ProductKernels kPortableProducts;
#if defined(__x86_64__)
extern const ProductKernels kAvx2Products;
extern const ProductKernels kAvx512Products;
#endif

}  // namespace internal
}  // namespace rhizome
