#include "cache/pool/rank_schedule.h"

#include <utility>

#include "cache/policy/belady_schedule.h"
#include "cache/policy/schedule_history.h"
#include "cache/pool/split_policy.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

AccessCosts CostsOverRanks(const Trace& trace, const RowsOverRanks& rows) {
  AccessCosts costs{
      .class_of = {},
      .cost = {static_cast<float>(rows.local_cost), static_cast<float>(rows.remote_cost)}};
  costs.class_of.reserve(trace.keys.size());
  for (const CacheKey row : trace.keys) costs.class_of.push_back(rows.ranks.IsOwn(row) ? 0 : 1);
  return costs;
}

RankSchedules::RankSchedules(const RowsOverRanks& rows, std::uint32_t frame_count)
    : rows_(rows),
      keeper_(rows.keeper ? rows.keeper(frame_count) : nullptr),
      frames_(frame_count - (keeper_ ? keeper_->frame_count() : 0), kNoRow) {
  RHIZOME_CHECK(frames_.size() <= frame_count);
}

Result<std::unique_ptr<Policy>> RankSchedules::MakeSchedule(const Trace& superbatch,
                                                            ScheduleHistory* history) {
  return MakeClassSchedule(superbatch, static_cast<std::uint32_t>(frames_.size()),
                           rows_.ranks.rank_of.size(), CostsOverRanks(superbatch, rows_), history,
                           &frames_);
}

Result<std::unique_ptr<Policy>> RankSchedules::Make(const Trace& superbatch,
                                                    ScheduleHistory* history) {
  if (keeper_ == nullptr) return MakeSchedule(superbatch, history);
  const SplitTrace split = Split(superbatch, rows_.ranks);
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<Policy> own, MakeSchedule(split.own, history));
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<Policy> remote, keeper_->Make(split.remote));
  return MakeSplitPolicy(rows_.ranks, static_cast<std::uint32_t>(frames_.size()), std::move(own),
                         std::move(remote));
}

}  // namespace internal
}  // namespace rhizome
