#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gnn/ops/dense.h"
#include "gnn/ops/layer_graph.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Reduces the groups of a layer's graph to rows, from rows of any type and place.
/// Threads: const functions may run concurrently.
/// Ownership: borrows its arguments.
class GroupReducer {
 public:
  /// `x.table` is contiguous. `graph` is from MakeGroupedGraph, for a sum or mean.
  GroupReducer(const LayerRows& x, const LayerGraph& graph);

  std::size_t columns() const { return rows_.dim; }

  /// Writes the rows of groups [first, first + count) to `out` [count, columns()].
  void Reduce(std::size_t first, std::size_t count, float* out) const;

 private:
  const LayerGraph& graph_;
  const RowsView rows_;
  std::vector<std::uint32_t> placed_;  // neighbours as rows of the table; empty: as listed
  SumArgs args_;
};

/// Returns the target of each group.
std::vector<std::uint32_t> TargetOfGroups(const GroupedLists& groups);

/// Returns at least `count` numbers from 0: the neighbours of lists whose edges are rows in order.
/// Valid until the next call of the calling thread.
std::span<const std::uint32_t> Consecutive(std::size_t count);

/// Computes the reduced row of each group: x [sources, columns] -> [groups, columns], with its
/// gradient if x has no `place`.
torch::Tensor ReduceGroups(const LayerRows& x, const LayerGraph& graph);

/// Computes the gradient of x from the gradient of each group's row, [groups, columns]. `own`
/// [targets, columns]: added to the gradient of the targets; or undefined.
torch::Tensor ReduceGroupsGradient(const LayerGraph& graph, const torch::Tensor& gradient,
                                   const torch::Tensor& own);

}  // namespace internal
}  // namespace rhizome
