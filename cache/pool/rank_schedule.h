#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/policy/offline_schedule.h"
#include "cache/policy/sweep.h"
#include "cache/pool/row_ranks.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

class ScheduleHistory;

/// Returns the cost of each access in a trace of rows: class 0 for rows of the local rank, class 1
/// for rows of other ranks.
AccessCosts CostsOverRanks(const Trace& trace, const RowsOverRanks& rows);

/// Makes the schedules of one rank's pool, one per superbatch. The schedules list which prefill
/// keys are read (Policy::PrefillReads), so that the rows requested from each rank depend only on
/// the traces.
/// Threads: one at a time.
class RankSchedules {
 public:
  /// Bytes per frame of the pool: its key, a sorted copy while a schedule is made, and the reads of
  /// two schedules.
  static constexpr std::uint64_t kBytesPerFrame = 32;

  RankSchedules(const RowsOverRanks& rows, std::uint32_t frame_count);

  /// Makes the schedule of the next superbatch. If `history` is null, rows that the superbatch does
  /// not request again have no value. Errors: as MakeBeladySchedule.
  Result<std::unique_ptr<Policy>> Make(const Trace& superbatch, ScheduleHistory* history);

  /// Records that the pool loses its contents before the next superbatch. Not allowed with a remote
  /// cache policy.
  void Empty() { frames_.assign(frames_.size(), kNoRow); }

 private:
  Result<std::unique_ptr<Policy>> MakeSchedule(const Trace& superbatch, ScheduleHistory* history);

  const RowsOverRanks rows_;
  const std::unique_ptr<RemoteCachePolicy> keeper_;  // null: the schedule uses the whole pool
  FrameKeys frames_;  // contents of the frames that the schedule uses
};

}  // namespace internal
}  // namespace rhizome
