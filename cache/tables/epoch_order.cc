#include "cache/tables/epoch_order.h"

#include <algorithm>
#include <utility>

#include "cache/tables/keyed_permutation.h"
#include "storage/base/check.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

EpochOrder::EpochOrder(std::vector<std::uint32_t> tour, std::span<const std::uint64_t> edges,
                       std::uint64_t batch_size, std::uint64_t seed, std::uint64_t epoch)
    : tour_(std::move(tour)), batch_size_(batch_size), seed_(seed), epoch_(epoch) {
  RHIZOME_CHECK(batch_size >= 1);
  first_batch_.push_back(0);
  for (const std::uint32_t group : tour_) {
    edges_.push_back(edges[group]);
    first_batch_.push_back(first_batch_.back() + (edges[group] + batch_size - 1) / batch_size);
  }
}

EdgeBatch EpochOrder::At(std::uint64_t batch) const {
  RHIZOME_DCHECK(batch < batches());
  // The last place whose first batch is not behind; empty groups share it with their successor.
  const auto after = std::upper_bound(first_batch_.begin(), first_batch_.end(), batch);
  const auto place = static_cast<std::size_t>(after - first_batch_.begin()) - 1;
  const std::uint64_t index = batch - first_batch_[place];
  const std::uint64_t first = index * batch_size_;
  return {.group = tour_[place],
          .first = first,
          .count = std::min(batch_size_, edges_[place] - first),
          .index = index,
          .group_batches = first_batch_[place + 1] - first_batch_[place]};
}

void EpochOrder::Positions(const EdgeBatch& batch, std::vector<std::uint64_t>& positions) const {
  const auto place =
      static_cast<std::size_t>(std::find(tour_.begin(), tour_.end(), batch.group) - tour_.begin());
  const KeyedPermutation permutation(edges_[place], Mix64(SplitMix64(seed_, epoch_) ^ batch.group));
  positions.resize(batch.count);
  for (std::uint64_t i = 0; i < batch.count; ++i) positions[i] = permutation(batch.first + i);
}

}  // namespace internal
}  // namespace rhizome
