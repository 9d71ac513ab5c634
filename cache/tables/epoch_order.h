#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rhizome {
inline namespace internal {

/// A batch of an epoch: edges of one group.
struct EdgeBatch {
  std::uint32_t group = 0;          ///< the partition; the number of partitions: the delta
  std::uint64_t first = 0;          ///< of the group's edges in this epoch's order
  std::uint64_t count = 0;          ///< number of edges
  std::uint64_t index = 0;          ///< of the batch in its group
  std::uint64_t group_batches = 0;  ///< batches of its group
};

/// The batches of one epoch of training on edges. Groups of edges (partitions, then the delta) are
/// visited one after another; within a group the edges are in random order (KeyedPermutation), and
/// no batch spans groups. Depends on the seed and the store, never on memory.
/// Memory: 24 bytes for each group.
/// Threads: const.
class EpochOrder {
 public:
  /// `tour`: the groups in their order (PartitionTour::InEpoch, then the delta). `edges`: the
  /// number of edges of each group, by group. `batch_size` is at least 1.
  EpochOrder(std::vector<std::uint32_t> tour, std::span<const std::uint64_t> edges,
             std::uint64_t batch_size, std::uint64_t seed, std::uint64_t epoch);

  std::uint64_t batches() const { return first_batch_.back(); }

  /// Returns a batch below batches().
  EdgeBatch At(std::uint64_t batch) const;

  /// Sets `positions` to the batch's edges, as positions in its group.
  void Positions(const EdgeBatch& batch, std::vector<std::uint64_t>& positions) const;

 private:
  const std::vector<std::uint32_t> tour_;
  const std::uint64_t batch_size_;
  const std::uint64_t seed_;
  const std::uint64_t epoch_;
  std::vector<std::uint64_t> edges_;        // by place in the tour
  std::vector<std::uint64_t> first_batch_;  // [groups + 1], by place in the tour
};

}  // namespace internal
}  // namespace rhizome
