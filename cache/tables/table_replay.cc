#include "cache/tables/table_replay.h"

#include <algorithm>
#include <utility>

#include "cache/policy/belady_schedule.h"
#include "cache/policy/offline_schedule.h"

namespace rhizome {
inline namespace internal {

TableReplay::TableReplay(std::uint32_t frame_count, std::uint64_t rows)
    : rows_(rows),
      frames_(frame_count, kNoRow),
      row_of_(frame_count, kNoRow),
      dirty_(frame_count, 0) {}

Status TableReplay::Add(const Trace& trace) {
  const auto frame_count = static_cast<std::uint32_t>(row_of_.size());
  RHIZOME_ASSIGN_OR_RETURN(const auto policy, MakeClassSchedule(trace, frame_count, rows_,
                                                                AccessCosts(), nullptr, &frames_));
  Fill(policy->Prefill());
  counts_.rows_read += policy->PrefillReads()->size();
  StepPlan plan;
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    RHIZOME_RETURN_IF_ERROR(policy->Step(trace.step(s), plan));
    Count(trace.step(s), plan);
  }
  return Status::Ok();
}

/// Replaces the rows in the frames by the prefill. Rows that both have remain in memory.
void TableReplay::Fill(std::span<const PrefillEntry> prefill) {
  std::vector<CacheKey> rows(row_of_.size(), kNoRow);
  std::vector<std::uint8_t> dirty(row_of_.size(), 0);
  for (const auto& [row, frame] : prefill) rows[frame] = row;
  const auto less = [](const PrefillEntry& entry, CacheKey row) { return entry.first < row; };
  for (std::size_t frame = 0; frame < row_of_.size(); ++frame) {
    if (dirty_[frame] == 0) continue;
    const auto kept = std::lower_bound(prefill.begin(), prefill.end(), row_of_[frame], less);
    if (kept != prefill.end() && kept->first == row_of_[frame])
      dirty[kept->second] = 1;
    else
      ++counts_.rows_written;
  }
  row_of_ = std::move(rows);
  dirty_ = std::move(dirty);
}

void TableReplay::Count(std::span<const CacheKey> keys, const StepPlan& plan) {
  counts_.rows_requested += keys.size();
  counts_.rows_read += plan.misses.size();
  for (const StepPlan::Place& hit : plan.hits) dirty_[hit.frame] = 1;
  // Rows that are read and get no frame are written when the step ends.
  counts_.rows_written += plan.misses.size() - plan.inserts.size();
  for (const auto& [request, frame] : plan.inserts) {
    counts_.rows_written += dirty_[frame];
    row_of_[frame] = keys[request];
    dirty_[frame] = 1;
  }
}

}  // namespace internal
}  // namespace rhizome
