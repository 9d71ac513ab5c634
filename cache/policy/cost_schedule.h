#pragma once

#include <cstdint>
#include <memory>

#include "rhizome/policy.h"
#include "storage/array/read_cost.h"

namespace rhizome {
inline namespace internal {

class ScheduleHistory;

/// A cache for a known future on a disk where reads of neighbouring rows are merged. It minimises
/// disk time rather than the number of rows. A row whose neighbours are read in the same step costs
/// almost nothing; an isolated row costs a whole read. Frames are assigned by the cost of a row's
/// next read, divided by the number of steps until then.
///
/// The cost of a row depends on what else is read, so the schedule is built in rounds: first
/// Belady's schedule, then one with the costs next to Belady's reads, one next to reads of all
/// rows, and one next to the reads of the best schedule so far. The fastest is used, so by this
/// model the result is never worse than Belady's. If Belady reads no row twice, only the first
/// round runs. Keys are rows of `row_bytes` bytes, in disk order.
///
/// With a history (schedule_history.h) it starts, and continues beyond its end, like
/// MakeBeladySchedule with a history. For a row that is not requested again, it assumes a next read
/// some steps after the end, at the cost of the row's last read.
///
/// Source: none; each round builds a weighted Belady schedule (belady_schedule.h). Time and memory
/// O(accesses), about four times as much as MakeBeladySchedule. Errors: see MakeBeladySchedule.
Result<std::unique_ptr<Policy>> MakeCostSchedule(const Trace& trace, std::uint32_t frame_count,
                                                 std::uint64_t key_count, std::uint64_t row_bytes,
                                                 const ReadCost& cost,
                                                 ScheduleHistory* history = nullptr);

}  // namespace internal
}  // namespace rhizome
