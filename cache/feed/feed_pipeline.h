#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rhizome/cache/feature_cache.h"
#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/cache/minibatch.h"
#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/cache/overlap.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/prior.h"
#include "rhizome/cache/row_ranks.h"
#include "rhizome/cache/stage_trace.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct FeedPipelineOptions {
  MinibatchSamplerOptions sampler;

  /// The lists that are sampled, if they are on disk; they have the memory in turn with
  /// Overlap::kChangeset. Null: the graph's, in memory.
  std::shared_ptr<ListsOnDisk> lists = nullptr;
  std::string features;
  bool normalize = false;
  PolicyKind policy = PolicyKind::kBelady;

  /// The worth of rows that a superbatch does not ask for again, for policies that TakesPrior says;
  /// with Overlap::kChangeset, which empties the cache between superbatches, they have none.
  Prior prior = Prior::kUses;
  std::uint64_t cache_bytes = 0;

  /// Rows that minibatches may hold beside the cache: misses, and hits that have left it since.
  /// Reading waits where they hold more. 0: it does not.
  std::uint64_t held_rows = 0;
  std::optional<ReadCost> read_cost = std::nullopt;  ///< of the disk; absent: measured

  /// Makes what rows are read through (FeatureCacheOptions::fetcher). Empty: the disk's reader.
  RowFetcherMaker fetcher = {};

  /// Says where rows are, for the schedule (PolicyKind::kBelady): it weighs them by what they cost,
  /// and what is read of whom does not depend on time. The table must outlive the pipeline. Absent:
  /// each row costs the same.
  std::optional<RowsOverRanks> over_ranks = std::nullopt;

  /// Minibatches that are sampled ahead and scheduled together, at most (SeedBatch says where
  /// superbatches begin, too).
  std::uint32_t superbatch = 1;
  Overlap overlap = Overlap::kAll;

  /// Adds to a minibatch what else it needs, when it has its features; called by the reading
  /// thread. Empty: nothing.
  std::function<Status(Minibatch&)> complete = {};

  /// Told the rows of each superbatch, in order, before its first minibatch is delivered; by one
  /// thread or another. Empty: nobody.
  std::function<Status(const Trace&)> on_superbatch = {};
  IoMaker io = IoMaker::kAuto;
  std::uint32_t depth = IoQueueOptions().depth;  ///< reads in flight at most
  std::size_t staging_bytes = std::size_t{16} << 20;
  Path scratch;                 ///< an existing folder for the superbatch files
  StageTrace* trace = nullptr;  ///< told what ran when; must outlive the pipeline
};

/// Returns whether schedules have a thread of their own, on which the schedule of a superbatch is
/// made while the next one is sampled: where there is a processor for each stage. It costs the
/// memory of a third superbatch's rows.
bool SchedulesApart(const FeedPipelineOptions& options);

/// Returns whether a pipeline's schedules have a prior.
bool KeepsHistory(const FeedPipelineOptions& options);

/// Minibatches in the pipeline at once: one is being read, one is ready.
inline constexpr std::size_t kMinibatchesAhead = 2;

/// Minibatches in memory at once: in the pipeline, and computed on.
inline constexpr std::size_t kMinibatchesAlive = kMinibatchesAhead + 1;

/// Delivers minibatches with their features, in order, to whoever names their seeds: the Loader
/// (loader.h), and trainings and inferences of gnn/. Three stages run at once, a thread each (four,
/// where SchedulesApart): superbatch k + 1 is sampled to a scratch file and its cache schedule made
/// while superbatch k is used; of minibatch i + 2 the rows that miss are read; the caller computes
/// on i. Features are not copied: a minibatch holds the cache's own rows until it is destroyed. The
/// seeds and the sampler's seed alone decide what is delivered, not policy, cache size, superbatch
/// or I/O maker.
///
/// With Overlap::kChangeset sampling and reading take turns: superbatch k + 1 is sampled while k is
/// scheduled, on the reading thread; then k is used, while nothing is sampled; then the cache's
/// memory is given back.
///
/// With Overlap::kNone the second stage reads nothing before Next is called.
///
/// No stage waits for one that waits for it: each queue is bounded, has one producer and one
/// consumer, and ends in both directions; a minibatch enters the pipeline only when there is room;
/// and reading does not wait for rows to be given back while the caller waits for rows.
///
/// Source: the inspector-executor of Ginex (VLDB 2022), overlapped.
/// Threads: Next one at a time. Ownership: graph, its store and `control` must outlive it, and it
/// all minibatches that it delivered.
class FeedPipeline {
 public:
  /// Asked for the next batch by the sampling thread; nothing after the last.
  using NextSeeds = std::function<std::optional<SeedBatch>()>;

  /// Errors: those of FeatureCache::Open and Sampler::Create; kInvalidArgument, features of a
  /// dtype that is no number to compute on, or over_ranks has not all rows, or no costs.
  static Result<std::unique_ptr<FeedPipeline>> Open(const GraphSnapshot& graph,
                                                    const FeedPipelineOptions& options,
                                                    NextSeeds next_seeds,
                                                    const JobControl& control);

  /// Stops the threads, whatever they do. Superbatch files may be left in the scratch folder.
  ~FeedPipeline();

  /// The next minibatch; nothing after the last. Destroy those that are not needed any more first:
  /// they hold memory. Errors: of any stage, reported once everything before it was delivered;
  /// kInterrupted; kOutOfMemory, many more minibatches are held than the pipeline counts on.
  Result<std::optional<Minibatch>> Next();

  /// How the reads were made. Call when Next has returned nothing.
  RowReaderStats reader_stats() const;

 private:
  class Impl;
  explicit FeedPipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal
}  // namespace rhizome
