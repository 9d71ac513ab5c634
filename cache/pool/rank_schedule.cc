#include "rhizome/cache/rank_schedule.h"

#include "rhizome/cache/belady_schedule.h"
#include "rhizome/cache/schedule_history.h"

namespace rhizome::inline internal {

AccessCosts CostsOverRanks(const Trace& trace, const RowsOverRanks& rows) {
  AccessCosts costs{
      .class_of = {},
      .cost = {static_cast<float>(rows.local_cost), static_cast<float>(rows.remote_cost)}};
  costs.class_of.reserve(trace.keys.size());
  for (const CacheKey row : trace.keys) costs.class_of.push_back(rows.ranks.IsOwn(row) ? 0 : 1);
  return costs;
}

Result<std::unique_ptr<Policy>> RankSchedules::Make(const Trace& superbatch,
                                                    ScheduleHistory* history) {
  return MakeClassSchedule(superbatch, static_cast<std::uint32_t>(frames_.size()),
                           rows_.ranks.rank_of.size(), CostsOverRanks(superbatch, rows_), history,
                           &frames_);
}

}  // namespace rhizome::inline internal
