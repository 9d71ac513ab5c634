#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/feed_pipeline.h"
#include "cache/feed/input_division.h"
#include "cache/feed/minibatch_sampler.h"
#include "cache/job/memory_plan.h"
#include "cache/policy/replay.h"
#include "cache/policy/sampled_trace.h"
#include "rhizome/chunk_array.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/job_report.h"
#include "rhizome/policy.h"
#include "rhizome/sampler.h"
#include "storage/array/read_cost.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the bytes that schedules take per row of each minibatch in a superbatch. Includes the
/// superbatch in use, the next one, and one that is sampled concurrently.
std::uint64_t ScheduleBytesPerAccess(const FeedPipelineOptions& feed);

/// A job that consumes minibatches, before its memory is divided.
struct FeedJob {
  const GraphSnapshot& graph;

  /// Complete except for the fields that PlanFeed sets when it divides the memory.
  FeedPipelineOptions pipeline;
  FixedMemory fixed;
  std::uint64_t memory_bytes = 0;  ///< 0: no limit

  /// Returns the bytes that the job already uses. Called after the first minibatch was sampled.
  std::function<std::uint64_t()> held_bytes = {};

  /// Returns the bytes that the consumer needs for a minibatch, in addition to the minibatch
  /// itself. Empty: none.
  std::function<std::uint64_t(const Minibatch&)> compute_bytes = {};

  /// Number of minibatches that superbatches are chosen for; 0: all of the plan.
  std::uint64_t minibatches = 0;

  /// Whether the first minibatch is wanted soon: fewer minibatches are sampled to try superbatch
  /// lengths, and none if all rows fit in the cache.
  bool starts_soon = false;

  /// Bytes of other schedules that are made from superbatches (FeedPipelineOptions::on_superbatch),
  /// per row of each minibatch.
  std::uint64_t other_schedule_bytes = 0;
};

/// The batches of seeds that a job consumes, from the first one.
struct SeedStream {
  FeedPipeline::NextSeeds next;
  std::uint64_t minibatches = 0;

  /// Returns the first validation batch, which may need more memory than others; empty: there is
  /// none.
  FeedPipeline::NextSeeds first_valid = {};
};

/// An array of a job, and its part of the profile.
struct ProfiledArray {
  std::unique_ptr<ChunkArray> array;
  ArrayEntry entry;
  std::uint64_t rows = 0;                  ///< rows that can be requested
  std::size_t staging_bytes = 0;           ///< read buffers
  std::uint64_t decoded_bytes = 1;         ///< bytes of a decoded row
  std::uint64_t kept_bytes = 1;            ///< bytes of a row in the pool
  std::uint64_t frame_bytes = 1;           ///< bytes of cache memory per row in the pool
  std::uint64_t held_rows = 0;             ///< rows that minibatches hold outside the pool
  std::optional<ReadCost> read_cost = {};  ///< of the disk, if it was measured
  PolicyOptions policy = {};               ///< complete except for frame_count
};

/// Profile of a job, measured on its first minibatches: the memory that it needs and, by replay,
/// the read time for superbatches of a given length.
/// Threads: one at a time.
class FeedProfile {
 public:
  /// Samples the first minibatch of `seeds`. If superbatch lengths can be tried, samples further
  /// minibatches for up to kProfileSeconds. `neighbors`: null means the lists of the graph, in
  /// memory. Errors: any error of sampling or of reading the features to time the disk;
  /// kInvalidArgument, the array cannot serve as features; kInterrupted.
  static Result<FeedProfile> Measure(const FeedJob& job,
                                     std::shared_ptr<const NeighborSource> neighbors,
                                     const SeedStream& seeds, const JobControl& control);

  const MemoryNeeds& needs() const { return needs_; }

  /// Returns a trial of superbatches up to half of the sampled minibatches. It refers to this
  /// object, which records the results. A failed trial returns infinity and sets trial_status().
  SuperbatchTrial trial();
  const Status& trial_status() const { return trial_status_; }

  /// The arrays of the job: one, or several if features depend on the type (by_type).
  const std::vector<ProfiledArray>& arrays() const { return arrays_; }
  const InputDivision& division() const { return division_; }
  bool by_type() const { return division_.by_type(); }

  /// Divides cache memory among the arrays (DivideCache), based on replays of the sampled
  /// minibatches in superbatches of at most this length. Errors: any error of a policy.
  Result<std::vector<std::uint64_t>> Divide(std::uint32_t superbatch,
                                            std::uint64_t cache_bytes) const;

  /// Limit on reads in flight.
  std::uint32_t depth() const { return depth_; }

  /// Returns the number of sampled minibatches and the results of all trials.
  FeedProfileReport report() const;

 private:
  explicit FeedProfile(InputDivision division) : division_(std::move(division)) {}
  Status SampleMore(const MinibatchSampler& sampler, const SeedStream& seeds, const FeedJob& job,
                    const JobControl& control);
  double ReadSeconds(std::uint32_t superbatch, std::uint64_t cache_bytes);
  /// A sample of the rows of each array.
  struct TracesOfDivision {
    std::vector<SampledTrace> arrays;
    std::uint64_t one_in = 1;  ///< the sampled part of the rows
  };

  Result<SuperbatchReplay> Replay(std::size_t array, const Trace& trace, std::uint64_t key_count,
                                  std::uint32_t superbatch, std::uint64_t cache_bytes) const;
  Result<std::vector<std::uint64_t>> PartsForTrial(std::uint64_t cache_bytes);
  TracesOfDivision TracesForDivision() const;
  std::size_t steps() const { return traces_.empty() ? 0 : traces_.front().steps(); }

  MemoryNeeds needs_;
  std::uint32_t depth_ = IoQueueOptions().depth;
  Prior prior_ = Prior::kNone;
  bool may_try_ = false;         // superbatch lengths
  std::uint64_t row_count_ = 0;  // of the graph; set by SampleMore
  InputDivision division_;
  std::vector<ProfiledArray> arrays_;
  std::vector<Trace> traces_;        // one for each array
  std::vector<double> trial_parts_;  // of the cache memory in trials; empty: not divided yet
  std::map<std::pair<std::uint32_t, std::uint64_t>, double> tried_;
  Status trial_status_;
};

/// Options and memory of a job's pipeline.
struct FeedPlan {
  FeedPipelineOptions pipeline;  ///< complete except for the fields that Prepare sets
  JobMemoryPlan memory;
  MemoryNeeds needs;
  FeedProfileReport profile;
  std::vector<InputMemory> inputs;  ///< cache memory of each array, if there are several

  /// Sets the scratch folder, which must exist, and opens the neighbour lists if they are on disk.
  /// Errors: as ListsOnDisk::Open.
  Status Prepare(const GraphSnapshot& graph, const Path& scratch, const JobControl& control);
};

/// Divides the memory of a job, based on its first minibatches. If over_ranks is set, no superbatch
/// lengths are tried and sampling and reading do not take turns; the caller accounts for the table
/// of ranks and for the memory that a rank serves rows from (`held_bytes`).
/// Errors: as FeedProfile::Measure and PlanMemory.
Result<FeedPlan> PlanFeed(const FeedJob& job, const SeedStream& seeds, const JobControl& control);

/// As above, for the seeds of a plan.
Result<FeedPlan> PlanFeed(const FeedJob& job, const EpochPlan& plan, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
