#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/offline_schedule.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/row_ranks.h"
#include "rhizome/cache/sweep.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

class ScheduleHistory;

/// The cost of each access of a trace of rows: class 0 is the rank's own rows, class 1 is those of
/// other ranks.
AccessCosts CostsOverRanks(const Trace& trace, const RowsOverRanks& rows);

/// Makes the schedules of one rank's pool, superbatch after superbatch. They say what of their
/// prefill is read (Policy::PrefillReads), so that what is read of whom follows from the traces
/// alone.
/// Threads: one at a time.
class RankSchedules {
 public:
  /// Bytes for each frame of the pool: its key, a sorted copy while a schedule is made, and the
  /// reads of two schedules.
  static constexpr std::uint64_t kBytesPerFrame = 32;

  RankSchedules(const RowsOverRanks& rows, std::uint32_t frame_count);

  /// Makes the schedule of the next superbatch. `history`: null, rows that it does not ask for
  /// again are worth nothing. Errors: those of MakeBeladySchedule.
  Result<std::unique_ptr<Policy>> Make(const Trace& superbatch, ScheduleHistory* history);

  /// Notes that the pool loses what it holds before the next superbatch. Not with a keeper.
  void Empty() { frames_.assign(frames_.size(), kNoRow); }

 private:
  Result<std::unique_ptr<Policy>> MakeSchedule(const Trace& superbatch, ScheduleHistory* history);

  const RowsOverRanks rows_;
  const std::unique_ptr<RemoteKeeper> keeper_;  // null: the schedule has the whole pool
  FrameKeys frames_;                            // those that the schedule has
};

}  // namespace rhizome::inline internal
