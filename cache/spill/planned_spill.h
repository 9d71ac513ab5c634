#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "rhizome/cache/full_graph_plan.h"
#include "rhizome/cache/pass_sequence.h"
#include "rhizome/cache/spill_policy.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A plan as it is run, epoch after epoch: what each pass does to chunks, and the policy that
/// decides about each of them.
/// Threads: const.
class PlannedSpill {
 public:
  /// Prepares a plan of this sequence. Ownership: `sequence` must outlive it. Errors: those of the
  /// sequence's counter; kInvalidArgument, the plan is of another sequence.
  static Result<std::unique_ptr<PlannedSpill>> Create(const PassSequence& sequence,
                                                      const FullGraphPlan& plan);
  ~PlannedSpill();

  /// Returns what a pass does to chunks, in order: a chunk is written behind the last of its rows;
  /// a block gathers at its first row; a chunk is read in order at its first row.
  std::vector<ChunkAccess> Accesses(std::size_t pass) const;

  /// Returns whether a pass behind `pass` reads an array.
  bool NeededAfter(ArrayId array, std::size_t pass) const;

  /// Makes the policy of one epoch, which must not outlive this. It is asked about the accesses of
  /// all passes, in order.
  std::unique_ptr<SpillPolicy> NewPolicy() const;

 private:
  struct Impl;
  explicit PlannedSpill(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal
}  // namespace rhizome
