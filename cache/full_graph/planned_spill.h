#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cache/full_graph/full_graph_plan.h"
#include "cache/full_graph/pass_sequence.h"
#include "cache/full_graph/spill_policy.h"
#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A plan in execution, for any number of epochs: the chunk accesses of each pass, and the policy
/// that decides about each of them.
/// Threads: immutable.
class PlannedSpill {
 public:
  /// Prepares the execution of a plan.
  /// Ownership: `sequence` must outlive this object. Errors: any error of the sequence's counter;
  /// kInvalidArgument, the plan is of another sequence.
  static Result<std::unique_ptr<PlannedSpill>> Create(const PassSequence& sequence,
                                                      const FullGraphPlan& plan);
  ~PlannedSpill();

  /// Returns the chunk accesses of a pass, in order: a chunk is written after the last of its rows;
  /// a block gathers at its first row; a chunk is read in order at its first row.
  std::vector<ChunkAccess> Accesses(std::size_t pass) const;

  /// Returns whether a pass after `pass` reads the array.
  bool NeededAfter(ArrayId array, std::size_t pass) const;

  /// Creates the policy for one epoch. This object must outlive it. It must be called for the
  /// accesses of all passes, in order.
  std::unique_ptr<SpillPolicy> NewPolicy() const;

 private:
  struct Impl;
  explicit PlannedSpill(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal
}  // namespace rhizome
