#include "cache/pool/split_policy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

/// A subset of a step's keys, with the position of each in the step.
struct PartOfStep {
  std::vector<CacheKey> keys;
  std::vector<std::uint32_t> requests;
  StepPlan plan;

  void Clear() {
    keys.clear();
    requests.clear();
  }
  void Add(CacheKey key, std::uint32_t request) {
    keys.push_back(key);
    requests.push_back(request);
  }

  /// Appends this part's plan to the plan of the whole step. Frame 0 of the part is frame `first`
  /// of the pool.
  void AddTo(StepPlan& whole, FrameId first) const {
    const auto place = [&](const StepPlan::Place& of_part) {
      return StepPlan::Place{requests[of_part.request], first + of_part.frame};
    };
    for (const StepPlan::Place& hit : plan.hits) whole.hits.push_back(place(hit));
    for (const std::uint32_t miss : plan.misses) whole.misses.push_back(requests[miss]);
    for (const StepPlan::Place& insert : plan.inserts) whole.inserts.push_back(place(insert));
    for (const FrameId frame : plan.done) whole.done.push_back(first + frame);
  }
};

class SplitPolicy final : public Policy {
 public:
  SplitPolicy(const RowRanks& ranks, std::uint32_t own_frames, std::unique_ptr<Policy> own,
              std::unique_ptr<Policy> remote)
      : ranks_(ranks), own_frames_(own_frames), own_(std::move(own)), remote_(std::move(remote)) {
    const auto own_reads = own_->PrefillReads(), remote_reads = remote_->PrefillReads();
    RHIZOME_CHECK(own_reads && remote_reads);
    prefill_.assign(own_->Prefill().begin(), own_->Prefill().end());
    for (const auto& [key, frame] : remote_->Prefill())
      prefill_.emplace_back(key, own_frames_ + frame);
    std::sort(prefill_.begin(), prefill_.end());
    std::merge(own_reads->begin(), own_reads->end(), remote_reads->begin(), remote_reads->end(),
               std::back_inserter(reads_));
  }

  std::span<const PrefillEntry> Prefill() const override { return prefill_; }
  std::optional<std::span<const CacheKey>> PrefillReads() const override { return reads_; }
  std::uint32_t frames_needed() const override {
    return std::min(own_->frames_needed(), own_frames_) + remote_->frames_needed();
  }

  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    plan.Clear();
    own_part_.Clear();
    remote_part_.Clear();
    for (std::uint32_t i = 0; i < keys.size(); ++i)
      (ranks_.IsOwn(keys[i]) ? own_part_ : remote_part_).Add(keys[i], i);
    RHIZOME_RETURN_IF_ERROR(own_->Step(own_part_.keys, own_part_.plan));
    RHIZOME_RETURN_IF_ERROR(remote_->Step(remote_part_.keys, remote_part_.plan));
    own_part_.AddTo(plan, 0);
    remote_part_.AddTo(plan, own_frames_);
    return Status::Ok();
  }

 private:
  const RowRanks ranks_;
  const std::uint32_t own_frames_;
  const std::unique_ptr<Policy> own_, remote_;
  std::vector<PrefillEntry> prefill_;
  std::vector<CacheKey> reads_;
  PartOfStep own_part_, remote_part_;
};

}  // namespace

std::unique_ptr<Policy> MakeSplitPolicy(const RowRanks& ranks, std::uint32_t own_frames,
                                        std::unique_ptr<Policy> own,
                                        std::unique_ptr<Policy> remote) {
  return std::make_unique<SplitPolicy>(ranks, own_frames, std::move(own), std::move(remote));
}

SplitTrace Split(const Trace& trace, const RowRanks& ranks) {
  SplitTrace split;
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    for (const CacheKey key : trace.step(s))
      (ranks.IsOwn(key) ? split.own : split.remote).keys.push_back(key);
    split.own.offsets.push_back(split.own.keys.size());
    split.remote.offsets.push_back(split.remote.keys.size());
  }
  return split;
}

}  // namespace internal
}  // namespace rhizome
