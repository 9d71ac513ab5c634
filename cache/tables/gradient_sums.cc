#include "cache/tables/gradient_sums.h"

#include <algorithm>
#include <limits>

#include "index/base/parallel.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

GradientSums::GradientSums(std::span<const std::uint32_t> row_of_pair, std::size_t rows)
    : first_(rows + 1), pairs_(row_of_pair.size()) {
  RHIZOME_CHECK(row_of_pair.size() < std::numeric_limits<std::uint32_t>::max());
  for (const std::uint32_t row : row_of_pair) ++first_[row + std::size_t{1}];
  for (std::size_t row = 0; row < rows; ++row) first_[row + 1] += first_[row];
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t pair = 0; pair < row_of_pair.size(); ++pair)
    pairs_[next[row_of_pair[pair]]++] = pair;
}

void GradientSums::Add(std::span<const float> gradients, std::size_t dim,
                       std::span<float> sums) const {
  RHIZOME_CHECK(gradients.size() == pairs_.size() * dim &&
                sums.size() == (first_.size() - 1) * dim);
  constexpr std::size_t kRowsAtOnce = 64;
  const std::size_t rows = first_.size() - 1;
  ParallelFor((rows + kRowsAtOnce - 1) / kRowsAtOnce, [&](std::size_t piece) {
    const std::size_t end = std::min(rows, (piece + 1) * kRowsAtOnce);
    for (std::size_t row = piece * kRowsAtOnce; row < end; ++row) {
      float* const sum = sums.data() + row * dim;
      std::fill_n(sum, dim, 0.0F);
      for (std::uint32_t p = first_[row]; p < first_[row + 1]; ++p) {
        const float* const gradient = gradients.data() + pairs_[p] * dim;
        for (std::size_t i = 0; i < dim; ++i) sum[i] += gradient[i];
      }
    }
  });
}

}  // namespace internal
}  // namespace rhizome
