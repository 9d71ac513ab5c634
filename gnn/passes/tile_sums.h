#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Sums over the tiles of a pass: gradients of weights, losses, statistics. Tile t adds to group t
/// % kGroups, the tiles of a group are added one after another in ascending order, and the groups
/// are added in order at the end. So the bits depend only on the tiles, not on threads or on the
/// division of a pass into chunks and blocks.
/// Threads: Add is called from one thread per group.
class TileSums {
 public:
  static constexpr std::size_t kGroups = 8;

  explicit TileSums(std::size_t count) : groups_(kGroups, std::vector<torch::Tensor>(count)) {}

  /// Adds to sum `index`. An undefined tensor is ignored.
  void Add(std::size_t group, std::size_t index, const torch::Tensor& tensor) {
    if (!tensor.defined()) return;
    torch::Tensor& sum = groups_[group][index];
    if (sum.defined()) {
      sum.add_(tensor.detach());
    } else {
      sum = tensor.detach().clone();
    }
  }

  /// Returns the sum over all groups, undefined if no tensor was added to it.
  torch::Tensor Sum(std::size_t index) const {
    torch::Tensor sum;
    for (const std::vector<torch::Tensor>& group : groups_) {
      if (!group[index].defined()) continue;
      sum = sum.defined() ? sum + group[index] : group[index].clone();
    }
    return sum;
  }

  /// Returns the sum of one group, undefined if no tensor was added to it. Set replaces the sum.
  const torch::Tensor& Of(std::size_t group, std::size_t index) const {
    return groups_[group][index];
  }
  void Set(std::size_t group, std::size_t index, torch::Tensor sum) {
    groups_[group][index] = std::move(sum);
  }

  std::size_t count() const { return groups_.front().size(); }

 private:
  std::vector<std::vector<torch::Tensor>> groups_;
};

}  // namespace internal
}  // namespace rhizome
