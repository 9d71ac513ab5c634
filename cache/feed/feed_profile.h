#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/cache/feed_pipeline.h"
#include "rhizome/cache/job_report.h"
#include "rhizome/cache/memory_plan.h"
#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/cache/policies.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/read_cost.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the bytes that schedules take for each row of each minibatch of a superbatch: of the
/// superbatch in use, of the next one, and of the one that is sampled meanwhile.
std::uint64_t ScheduleBytesPerAccess(const FeedPipelineOptions& feed);

/// A job that is fed with minibatches, before its memory is divided.
struct FeedJob {
  const GraphSnapshot& graph;

  /// All but what the division of memory decides (PlanFeed).
  FeedPipelineOptions pipeline;
  FixedMemory fixed;
  std::uint64_t memory_bytes = 0;  ///< 0: no limit

  /// Taken already; asked when the first minibatch has been sampled.
  std::function<std::uint64_t()> held_bytes = {};

  /// Returns the bytes that the consumer takes for such a minibatch, beside it. Empty: none.
  std::function<std::uint64_t(const Minibatch&)> compute_bytes = {};

  /// Bytes of schedules that others make of superbatches (FeedPipelineOptions::on_superbatch), for
  /// each row of each minibatch.
  std::uint64_t other_schedule_bytes = 0;
};

/// A profile of a job, from its first minibatches: how much memory it needs, and what superbatches
/// of a size would read, by a replay.
/// Threads: one at a time.
class FeedProfile {
 public:
  /// Samples the first minibatch of `plan`, and more for as long as kProfileSeconds if superbatches
  /// are to be tried. `neighbors`: null, the graph, in memory. Errors: those of sampling, and of
  /// reading the features to time the disk; kInvalidArgument, they are no features; kInterrupted.
  static Result<FeedProfile> Measure(const FeedJob& job,
                                     std::shared_ptr<const NeighborSource> neighbors,
                                     EpochPlan plan, const JobControl& control);

  const MemoryNeeds& needs() const { return needs_; }

  /// Tries superbatches up to half of what was sampled, and keeps what was tried. It refers to
  /// this. A trial that fails takes for ever, and trial_status() says why.
  SuperbatchTrial trial();
  const Status& trial_status() const { return trial_status_; }

  /// The cost of the disk's reads, if it was measured.
  const std::optional<ReadCost>& read_cost() const { return read_cost_; }

  /// Bytes of a row in the pool.
  std::uint64_t kept_bytes() const { return kept_bytes_; }

  /// Limit of reads in flight.
  std::uint32_t depth() const { return depth_; }

  /// Returns what was sampled, and what was tried with it.
  FeedProfileReport report() const;

 private:
  FeedProfile() = default;
  Status SampleMore(const MinibatchSampler& sampler, EpochPlan& plan, const FeedJob& job,
                    const JobControl& control);
  double ReadSeconds(std::uint32_t superbatch, std::uint64_t cache_bytes);

  MemoryNeeds needs_;
  std::optional<ReadCost> read_cost_;
  std::uint32_t depth_ = IoQueueOptions().depth;
  PolicyOptions policy_;  // without frame_count
  Prior prior_ = Prior::kNone;
  std::uint64_t kept_bytes_ = 1;   // of a row in the pool
  std::uint64_t frame_bytes_ = 1;  // of the cache for each such row
  Trace trace_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, double> tried_;
  Status trial_status_;
};

/// How a job is fed.
struct FeedPlan {
  FeedPipelineOptions pipeline;  ///< complete, but for what Prepare fills in
  JobMemoryPlan memory;
  MemoryNeeds needs;
  FeedProfileReport profile;

  /// Names the folder for superbatches, which exists, and opens lists that are on disk.
  /// Errors: those of ListsOnDisk::Open.
  Status Prepare(const GraphSnapshot& graph, const Path& scratch, const JobControl& control);
};

/// Divides the memory of a job, as its first minibatches let expect. Over ranks (over_ranks is set)
/// superbatches are not tried, and sampling and reading do not take turns; the table of ranks, and
/// what a rank serves from, are the caller's (`held_bytes`).
/// Errors: those of FeedProfile::Measure and of PlanMemory.
Result<FeedPlan> PlanFeed(const FeedJob& job, const EpochPlan& plan, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
