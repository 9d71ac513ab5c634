#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/product_kernels.h"
#include "rhizome/export.h"

// Interface of the distances of rows and queries. It follows the rules of product_kernels.h: all
// sets give the same bits, and the bits of a distance depend only on its row and its query.

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A distance of a row x and a query q of the same columns.
enum class RowDistance : std::uint8_t {
  kL1,       ///< sum of |x_k - q_k|
  kL2,       ///< sqrt(sum of (x_k - q_k)^2)
  kModulus,  ///< sum of |z_k|, where z_k is the complex number x_k - q_k; the second half of the
             ///< columns has the imaginary parts
};

/// out[i, o] = minus the distance of row i and query o; terms are added in the order of columns.
struct DistanceArgs {
  RowDistance by = RowDistance::kL1;
  ProductRows rows;
  const float* panels = nullptr;  ///< queries, [out, rows.columns], in panels
  std::size_t outputs = 0;
  float* out = nullptr;
  std::size_t out_stride = 0;
};

/// A set of kernels for rows [begin, end), which should be few enough to fit in the L2 cache.
struct DistanceKernels {
  void (*negative)(const DistanceArgs&, std::size_t begin, std::size_t end);
};

extern const DistanceKernels kPortableDistances;
#if defined(__x86_64__)
extern const DistanceKernels kAvx2Distances;
extern const DistanceKernels kAvx512Distances;
#endif

/// Returns the set of CurrentSimdPath().
const DistanceKernels& Distances();

}  // namespace internal
}  // namespace rhizome
