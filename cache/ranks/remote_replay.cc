#include "cache/ranks/remote_replay.h"

#include <algorithm>
#include <memory>

#include "cache/policy/basic_policies.h"
#include "cache/policy/belady_schedule.h"
#include "cache/policy/schedule_history.h"
#include "cache/policy/sweep.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

Trace StepsOf(const Trace& trace, std::size_t first, std::size_t end) {
  Trace part;
  for (std::size_t s = first; s < end; ++s) part.AddStep(trace.step(s));
  return part;
}

}  // namespace

/// A buffer that is managed by one policy after another.
class RemoteReplay::Buffer {
 public:
  explicit Buffer(const RemoteReplay& replay) : replay_(replay), frames_(replay.frames_, kNoRow) {}

  /// Plays the steps for which `policy` was made. Prefilled rows count as fetched unless they are
  /// in the buffer.
  Status Play(Policy& policy, const Trace& part) {
    Start(policy.Prefill());
    StepPlan plan;
    for (std::size_t s = 0; s < part.steps(); ++s) {
      const std::span<const CacheKey> rows = part.step(s);
      RHIZOME_RETURN_IF_ERROR(policy.Step(rows, plan));
      counts_.requests += rows.size();
      counts_.misses += plan.misses.size();
      for (const CacheKey row : rows) counts_.halo_requests += IsHalo(row);
      for (const std::uint32_t miss : plan.misses) counts_.halo_misses += IsHalo(rows[miss]);
      for (const StepPlan::Place& insert : plan.inserts)
        frames_[insert.frame] = rows[insert.request];
    }
    return Status::Ok();
  }

  const RemoteCounts& counts() const { return counts_; }

 private:
  bool IsHalo(CacheKey row) const { return replay_.is_halo_[static_cast<std::size_t>(row)]; }

  void Start(std::span<const PrefillEntry> prefill) {
    std::vector<CacheKey> there(frames_);
    std::sort(there.begin(), there.end());
    std::fill(frames_.begin(), frames_.end(), kNoRow);
    for (const auto& [row, frame] : prefill) {
      frames_[frame] = row;
      counts_.prefill += !std::binary_search(there.begin(), there.end(), row);
    }
  }

  const RemoteReplay& replay_;
  std::vector<CacheKey> frames_;
  RemoteCounts counts_;
};

RemoteReplay::RemoteReplay(const RemoteTrace& trace, std::span<const Row> halo,
                           std::uint64_t frame_count, std::uint64_t key_count)
    : trace_(trace),
      halo_(halo),
      frames_(static_cast<std::uint32_t>(frame_count)),
      keys_(key_count),
      is_halo_(key_count, false) {
  for (const Row row : halo) is_halo_[static_cast<std::size_t>(row)] = true;
}

RemoteCounts RemoteReplay::None() const {
  const std::unique_ptr<Policy> policy = MakeNonePolicy();
  Buffer buffer(*this);
  RHIZOME_CHECK(buffer.Play(*policy, trace_.rows).ok());
  return buffer.counts();
}

Result<RemoteCounts> RemoteReplay::Lru() const {
  const std::unique_ptr<Policy> policy =
      frames_ == 0 ? MakeNonePolicy() : MakeLruPolicy(frames_, keys_);
  Buffer buffer(*this);
  RHIZOME_RETURN_IF_ERROR(buffer.Play(*policy, trace_.rows));
  return buffer.counts();
}

Result<RemoteCounts> RemoteReplay::Static(std::span<const Row> ranking) const {
  RHIZOME_ASSIGN_OR_RETURN(const auto policy, MakeStaticPolicy(frames_, keys_, ranking));
  Buffer buffer(*this);
  RHIZOME_RETURN_IF_ERROR(buffer.Play(*policy, trace_.rows));
  return buffer.counts();
}

Result<RemoteCounts> RemoteReplay::EpochHotSet() const {
  Buffer buffer(*this);
  for (std::size_t epoch = 0; epoch + 1 < trace_.epochs.size(); ++epoch) {
    const Trace part = StepsOf(trace_.rows, trace_.epochs[epoch], trace_.epochs[epoch + 1]);
    RHIZOME_ASSIGN_OR_RETURN(std::vector<CacheKey> ranking, RankByUse(part, keys_));
    RHIZOME_ASSIGN_OR_RETURN(const auto policy, MakeStaticPolicy(frames_, keys_, ranking));
    RHIZOME_RETURN_IF_ERROR(buffer.Play(*policy, part));
  }
  return buffer.counts();
}

RemoteCounts RemoteReplay::Scored(const ScoredOptions& options) const {
  ScoredBuffer buffer(halo_, frames_, keys_, options);
  for (std::size_t s = 0; s < trace_.rows.steps(); ++s) buffer.Step(trace_.rows.step(s));
  return buffer.counts();
}

Result<RemoteCounts> RemoteReplay::Belady(std::size_t superbatch, const RemotePrior& prior) const {
  RHIZOME_DCHECK(superbatch > 0);
  std::optional<ScheduleHistory> history;
  if (!prior.chances.empty()) {
    history.emplace(prior.chances);
  } else if (prior.uses) {
    history.emplace(keys_);
  }
  Buffer buffer(*this);
  for (std::size_t first = 0; first < trace_.rows.steps(); first += superbatch) {
    const Trace part =
        StepsOf(trace_.rows, first, std::min(first + superbatch, trace_.rows.steps()));
    RHIZOME_ASSIGN_OR_RETURN(
        const auto policy, MakeBeladySchedule(part, frames_, keys_, history ? &*history : nullptr));
    RHIZOME_RETURN_IF_ERROR(buffer.Play(*policy, part));
  }
  return buffer.counts();
}

Result<RemoteCounts> RemoteReplay::Optimum() const {
  RHIZOME_ASSIGN_OR_RETURN(const auto policy, MakeBeladySchedule(trace_.rows, frames_, keys_));
  Buffer buffer(*this);
  RHIZOME_RETURN_IF_ERROR(buffer.Play(*policy, trace_.rows));
  return buffer.counts();
}

}  // namespace internal
}  // namespace rhizome
