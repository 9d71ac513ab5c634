#pragma once

#include <cstdint>
#include <memory>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/read_cost.h"

namespace rhizome::inline internal {

class ScheduleHistory;

/// A cache for a known future on a disk where reads of neighbouring rows are merged into one: it
/// saves the disk's time, not rows. A row whose neighbours are read in the same step costs next to
/// nothing, one that stands alone costs a whole read. A frame goes to the row whose next read would
/// cost most, divided by the number of steps until then.
///
/// What a row costs depends on what else is read, so the schedule is made in rounds: Belady's
/// schedule first, then one with the costs beside Belady's reads, one beside reads of all rows, and
/// one beside the reads of the best so far. The cheapest of them is used, so by this model it is
/// never worse than Belady's. Where Belady reads no row twice there is only the first round. Keys
/// are rows of `row_bytes` bytes, in the order in which they lie on disk.
///
/// With a history (schedule_history.h) it begins, and goes on after its end, as MakeBeladySchedule
/// does with one; a row that is not asked for again counts as one whose next read costs what its
/// last one did, some steps after the end.
///
/// Source: ours; the schedule that each round makes is Belady's (belady_schedule.h) with weights.
/// Time and memory O(accesses), some four times those of MakeBeladySchedule. Errors: as there.
Result<std::unique_ptr<Policy>> MakeCostSchedule(const Trace& trace, std::uint32_t frame_count,
                                                 std::uint64_t key_count, std::uint64_t row_bytes,
                                                 const ReadCost& cost,
                                                 ScheduleHistory* history = nullptr);

}  // namespace rhizome::inline internal
