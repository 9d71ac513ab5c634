#include "cache/ranks/remote_cache_policies.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "cache/policy/basic_policies.h"
#include "cache/policy/key_index.h"
#include "cache/policy/sweep.h"
#include "cache/ranks/row_halo.h"
#include "cache/ranks/scored_buffer.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Policy that caches a fixed set of rows for a whole superbatch: row i is in frame i.
class FixedRowsPolicy final : public Policy {
 public:
  /// `rows`: ascending. `reads`: the subset that the frames do not hold yet.
  FixedRowsPolicy(std::span<const CacheKey> rows, std::vector<CacheKey> reads)
      : reads_(std::move(reads)) {
    prefill_.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      prefill_.emplace_back(rows[i], static_cast<FrameId>(i));
    index_ = KeyIndex(prefill_);
  }

  std::span<const PrefillEntry> Prefill() const override { return prefill_; }
  std::optional<std::span<const CacheKey>> PrefillReads() const override { return reads_; }
  std::uint32_t frames_needed() const override {
    return static_cast<std::uint32_t>(prefill_.size());
  }
  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    plan.Clear();
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      const std::size_t at = index_.Find(keys[i]);
      if (at == KeyIndex::kAbsent) {
        plan.misses.push_back(i);
      } else {
        plan.hits.push_back({i, prefill_[at].second});
      }
    }
    return Status::Ok();
  }

 private:
  std::vector<PrefillEntry> prefill_;
  KeyIndex index_;
  const std::vector<CacheKey> reads_;
};

/// Policy that repeats steps that were played in advance. Its frames already hold the required
/// rows.
class PlayedSteps final : public Policy {
 public:
  PlayedSteps(std::vector<PrefillEntry> held, std::uint32_t frames, std::vector<StepPlan> steps)
      : held_(std::move(held)), frames_(frames), steps_(std::move(steps)) {}

  std::span<const PrefillEntry> Prefill() const override { return held_; }
  std::optional<std::span<const CacheKey>> PrefillReads() const override {
    return std::span<const CacheKey>();
  }
  std::uint32_t frames_needed() const override { return frames_; }
  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    if (next_ >= steps_.size() ||
        steps_[next_].hits.size() + steps_[next_].misses.size() != keys.size())
      return Status::InvalidArgument("the keys differ from the keys of the planned step");
    plan = std::move(steps_[next_++]);
    return Status::Ok();
  }

 private:
  const std::vector<PrefillEntry> held_;
  const std::uint32_t frames_;
  std::vector<StepPlan> steps_;
  std::size_t next_ = 0;
};

/// Base of remote cache policies with a fixed set of rows per superbatch.
class FixedSetPolicy : public RemoteCachePolicy {
 public:
  explicit FixedSetPolicy(std::uint32_t frames) : frames_(frames) {}
  std::uint32_t frame_count() const override { return frames_; }

 protected:
  /// Creates the policy that caches `rows`, which must be ascending and fit into the frames.
  std::unique_ptr<Policy> Keep(std::vector<CacheKey> rows) {
    RHIZOME_DCHECK(rows.size() <= frames_);
    std::vector<CacheKey> reads;
    if (RHIZOME_MUTANT("rows that the cache holds are fetched again")) held_.clear();
    std::set_difference(rows.begin(), rows.end(), held_.begin(), held_.end(),
                        std::back_inserter(reads));
    held_ = std::move(rows);
    return std::make_unique<FixedRowsPolicy>(held_, std::move(reads));
  }

  /// Returns the first rows of a ranking, up to the number of frames, in ascending order.
  std::vector<CacheKey> FirstOf(std::span<const CacheKey> ranking) const {
    const std::size_t count = std::min<std::size_t>(frames_, ranking.size());
    std::vector<CacheKey> rows(ranking.begin(),
                               ranking.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(rows.begin(), rows.end());
    return rows;
  }

 private:
  const std::uint32_t frames_;
  std::vector<CacheKey> held_;
};

/// Caches the first rows of a fixed ranking: static by degree, or by vertex-inclusion probability.
class RankingPolicy final : public FixedSetPolicy {
 public:
  RankingPolicy(std::uint32_t frames, std::shared_ptr<const std::vector<Row>> ranking)
      : FixedSetPolicy(frames), ranking_(std::move(ranking)) {}
  Result<std::unique_ptr<Policy>> Make(const Trace&) override { return Keep(FirstOf(*ranking_)); }

 private:
  const std::shared_ptr<const std::vector<Row>> ranking_;
};

/// RapidGNN's hot set; a superbatch is an epoch.
class EpochHotSetPolicy final : public FixedSetPolicy {
 public:
  EpochHotSetPolicy(std::uint32_t frames, std::uint64_t keys)
      : FixedSetPolicy(frames), keys_(keys) {}
  Result<std::unique_ptr<Policy>> Make(const Trace& remote) override {
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<CacheKey> ranking, RankByUse(remote, keys_));
    return Keep(FirstOf(ranking));
  }

 private:
  const std::uint64_t keys_;
};

/// MassiveGNN, with an eviction round in the last minibatch of each superbatch.
class ScoredPolicy final : public FixedSetPolicy {
 public:
  ScoredPolicy(std::uint32_t frames, const RemotePolicyInputs& facts, double gamma)
      : FixedSetPolicy(frames),
        buffer_(*facts.ranking, frames, facts.key_count,
                {.gamma = gamma, .delta = facts.minibatches}) {}
  Result<std::unique_ptr<Policy>> Make(const Trace& remote) override {
    std::unique_ptr<Policy> policy = Keep(buffer_.Held());
    for (std::size_t s = 0; s < remote.steps(); ++s)
      buffer_.Step(remote.step(s), s + 1 == remote.steps());
    return policy;
  }

 private:
  ScoredBuffer buffer_;
};

/// Evicts the least recently used rows.
class LruRemotePolicy final : public RemoteCachePolicy {
 public:
  LruRemotePolicy(std::uint32_t frames, std::uint64_t keys)
      : policy_(MakeLruPolicy(frames, keys)), frames_(frames, kNoRow) {}
  std::uint32_t frame_count() const override { return static_cast<std::uint32_t>(frames_.size()); }

  Result<std::unique_ptr<Policy>> Make(const Trace& remote) override {
    std::vector<PrefillEntry> held;
    for (FrameId frame = 0; frame < frames_.size(); ++frame)
      if (frames_[frame] != kNoRow) held.emplace_back(frames_[frame], frame);
    std::sort(held.begin(), held.end());
    std::vector<StepPlan> steps(remote.steps());
    for (std::size_t s = 0; s < remote.steps(); ++s) {
      RHIZOME_RETURN_IF_ERROR(policy_->Step(remote.step(s), steps[s]));
      for (const StepPlan::Place& insert : steps[s].inserts)
        frames_[insert.frame] = remote.step(s)[insert.request];
    }
    return std::make_unique<PlayedSteps>(std::move(held), frame_count(), std::move(steps));
  }

 private:
  const std::unique_ptr<Policy> policy_;
  std::vector<CacheKey> frames_;
};

std::unique_ptr<RemoteCachePolicy> MakeRemotePolicy(const PrefetchOptions& options,
                                                    const RemotePolicyInputs& facts,
                                                    std::uint32_t pool_frames) {
  const std::uint64_t wanted =
      options.remote_bytes ? *options.remote_bytes / facts.row_bytes : pool_frames / 2;
  const auto frames = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, pool_frames));
  const auto none = [] {
    return std::make_unique<RankingPolicy>(0, std::make_shared<const std::vector<Row>>());
  };
  if (frames == 0) return none();
  switch (options.policy) {
    case Prefetch::kScored:
      return std::make_unique<ScoredPolicy>(frames, facts, options.gamma);
    case Prefetch::kVip:
    case Prefetch::kStatic:
      return std::make_unique<RankingPolicy>(frames, facts.ranking);
    case Prefetch::kEpoch:
      return std::make_unique<EpochHotSetPolicy>(frames, facts.key_count);
    case Prefetch::kLru:
      return std::make_unique<LruRemotePolicy>(frames, facts.key_count);
    case Prefetch::kBelady:
    case Prefetch::kNone:
      break;
  }
  return none();
}

}  // namespace

// Steps of the file: PrefetchLookahead computes what a policy needs in advance (lists of all rows,
// ranking of a rank's remote rows); RemotePolicyFactoryFor turns this into a factory; the factory
// creates the policy for the size of the pool (MakeRemotePolicy); the policy's Make returns a
// Policy for each superbatch: FixedRowsPolicy for fixed sets, PlayedSteps for LRU.
RemoteCachePolicyFactory RemotePolicyFactoryFor(const PrefetchOptions& options,
                                                RemotePolicyInputs facts) {
  if (options.policy == Prefetch::kBelady) return {};
  return [options, facts = std::move(facts)](std::uint32_t pool_frames) {
    return MakeRemotePolicy(options, facts, pool_frames);
  };
}

Result<PrefetchLookahead> PrefetchLookahead::Create(const PrefetchOptions& options,
                                                    const GraphSnapshot& graph,
                                                    const SamplerOptions& sampler,
                                                    const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckPrefetch(options));
  PrefetchLookahead outlook(options, graph);
  outlook.fanouts_ = sampler.fanouts;
  if (options.policy == Prefetch::kVip &&
      !(sampler.typed_fanouts.empty() && sampler.meta_path.empty())) {
    return Fail(Status::InvalidArgument(
        "`prefetch=vip`: vertex-inclusion probabilities need `fanouts`, which apply to neighbours "
        "of all types together; choose another policy"));
  }
  if (NeedsLists(options.policy)) {
    RHIZOME_ASSIGN_OR_RETURN(outlook.lists_, AllLists(graph, sampler.direction, control));
  }
  return outlook;
}

Result<std::vector<Row>> PrefetchLookahead::ByChance(const RowRanks& ranks, HomeRange own,
                                                     const HomeEpochs& epochs) const {
  std::vector<Row> seeds;
  for (std::uint32_t home = own.first; home < own.first + own.count; ++home) {
    for (const VertexId vertex : epochs.TrainingVertices(home)) {
      RHIZOME_ASSIGN_OR_RETURN(const Row row, graph_->RowOf(vertex));
      seeds.push_back(row);
    }
  }
  // Each seed is in one of the training minibatches of an epoch.
  const double minibatches =
      static_cast<double>(epochs.counts().train) * static_cast<double>(own.count);
  return RankByChance(InclusionChances(lists_, seeds, 1 / std::max(minibatches, 1.0), fanouts_),
                      ranks);
}

Result<RemoteCachePolicyFactory> PrefetchLookahead::RemotePolicyFactoryOfRank(
    const RowRanks& ranks, HomeRange own, const HomeEpochs& epochs, std::uint64_t superbatch,
    std::uint64_t row_bytes) const {
  std::vector<Row> ranking;
  if (options_.policy == Prefetch::kVip) {
    RHIZOME_ASSIGN_OR_RETURN(ranking, ByChance(ranks, own, epochs));
  } else if (NeedsLists(options_.policy)) {
    ranking = HaloOf(lists_, ranks);
  }
  return RemotePolicyFactoryFor(
      options_, {.key_count = ranks.rank_of.size(),
                 .row_bytes = row_bytes,
                 .minibatches = std::max<std::uint64_t>(superbatch * own.count, 1),
                 .ranking = std::make_shared<const std::vector<Row>>(std::move(ranking))});
}

}  // namespace internal
}  // namespace rhizome
