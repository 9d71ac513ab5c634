#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/feed/lists_on_disk.h"
#include "cache/feed/minibatch_sampler.h"
#include "cache/job/stage_trace.h"
#include "cache/pool/row_ranks.h"
#include "rhizome/export.h"
#include "rhizome/feature_cache.h"
#include "rhizome/job_control.h"
#include "rhizome/loader.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Memory of one of several arrays.
struct InputShare {
  std::uint64_t cache_bytes = 0;
  std::uint64_t held_rows = 0;                       ///< as FeedPipelineOptions::held_rows
  std::optional<ReadCost> read_cost = std::nullopt;  ///< nullopt: measured
};

struct FeedPipelineOptions {
  MinibatchSamplerOptions sampler;

  /// Source of neighbour lists that are on disk; with Overlap::kChangeset its cache shares the
  /// memory of the feature cache, in turn. Null: the lists of the graph are in memory.
  std::shared_ptr<ListsOnDisk> lists = nullptr;

  /// Either the array with the features of all vertices, or the array of each vertex type, as
  /// InputArrays describes them: minibatches then have Minibatch::inputs and
  /// Minibatch::vertex_types. Types that are not named have no features. Several arrays cannot be
  /// combined with `fetcher`, `over_ranks` and `on_superbatch`.
  std::string features = {};
  std::vector<FeatureInput> inputs = {};
  bool normalize = false;
  PolicyKind policy = PolicyKind::kBelady;

  /// Value that schedules assign to rows that the superbatch does not request again, for policies
  /// where TakesPrior is true. Ignored with Overlap::kChangeset, which empties the cache between
  /// superbatches.
  Prior prior = Prior::kUses;
  std::uint64_t cache_bytes = 0;

  /// With `inputs`: the memory of each array, in the order of ArraysOf(inputs). Empty: equal parts
  /// of `cache_bytes`, and `held_rows` of each array.
  std::vector<InputShare> shares = {};

  /// Maximum number of rows that minibatches hold outside the cache: misses, and hits that were
  /// evicted since. Reading waits while more are held. 0: no limit.
  std::uint64_t held_rows = 0;
  std::optional<ReadCost> read_cost = std::nullopt;  ///< read cost of the disk; nullopt: measured

  /// Creates the object that reads rows (FeatureCacheOptions::fetcher). Empty: read from the local
  /// disk.
  RowFetcherFactory fetcher = {};

  /// Location and cost of each row in distributed training, for the schedule (PolicyKind::kBelady).
  /// The schedule weighs rows by these costs, and the rows that are requested from each rank do not
  /// depend on timing. The table must outlive the pipeline. Absent: all rows have equal cost.
  std::optional<RowsOverRanks> over_ranks = std::nullopt;

  /// Maximum number of minibatches that are sampled ahead and scheduled together.
  /// SeedBatch::begins_superbatch can end a superbatch earlier.
  std::uint32_t superbatch = 1;

  /// Maximum number of minibatches of a superbatch that are sampled together, in one sweep over the
  /// lists for each hop, if the lists are on disk.
  std::uint32_t swept = 1;
  Overlap overlap = Overlap::kAll;

  /// Completes a minibatch after its features were read; called on the reading thread. Empty: not
  /// called.
  std::function<Status(Minibatch&)> complete = {};

  /// Receives each sampled minibatch, without its rows, and the end of each superbatch. Called on
  /// the sampling thread. May be empty.
  std::function<void(const Minibatch&)> on_sampled = {};
  std::function<void()> on_drawn = {};

  /// Receives the rows of each superbatch, in order, before its first minibatch is delivered.
  /// Called on an unspecified thread of the pipeline, one call at a time. Empty: not called.
  std::function<Status(const Trace&)> on_superbatch = {};
  IoMaker io = IoMaker::kAuto;
  std::uint32_t depth = IoQueueOptions().depth;  ///< max reads in flight
  std::size_t staging_bytes = std::size_t{16} << 20;
  Path scratch;                 ///< existing folder for the superbatch files
  StageTrace* trace = nullptr;  ///< records the stages with their times; must outlive the pipeline
};

/// Returns whether schedules are made on a separate thread while the next superbatch is sampled.
/// This requires a processor for each stage, and memory for the rows of a third superbatch.
bool SchedulesApart(const FeedPipelineOptions& options);

/// Returns the bytes of read buffers for each of `arrays` arrays that share `staging_bytes`.
std::size_t StagingBytesOf(std::size_t staging_bytes, std::size_t arrays);

/// Returns whether the schedules of a pipeline use a prior, which requires a history.
bool KeepsHistory(const FeedPipelineOptions& options);

/// Number of minibatches in the pipeline at once: one being read and one ready.
inline constexpr std::size_t kMinibatchesAhead = 2;

/// Number of minibatches in memory at once: those in the pipeline and the one in use by the caller.
inline constexpr std::size_t kMinibatchesAlive = kMinibatchesAhead + 1;

/// Delivers minibatches with their features, in order, for a given sequence of seeds. Used by the
/// Loader (loader.h) and by training and inference in gnn/.
///
/// Three stages run concurrently, each on its own thread (four stages if SchedulesApart):
/// superbatch k + 1 is sampled into a scratch file and its cache schedule is made while superbatch
/// k is used; the missing rows of minibatch i + 2 are read; the caller computes on minibatch i.
/// Features are not copied: a minibatch holds the rows of the cache until it is destroyed. The
/// delivered minibatches depend only on the seeds and on the sampler's seed, not on policy, cache
/// size, superbatch length or I/O maker.
///
/// With Overlap::kChangeset, sampling and reading take turns: superbatch k + 1 is sampled while
/// superbatch k is scheduled, on the reading thread; then k is used while no sampling takes place;
/// then the memory of the cache is released.
///
/// With Overlap::kNone, the second stage reads no rows before Next is called.
///
/// Deadlock freedom: each queue is bounded, has one producer and one consumer, and can be ended
/// from both sides; a minibatch enters the pipeline only when there is space; and reading does not
/// wait for rows to be released while the caller waits for rows.
///
/// Source: the inspector-executor of Ginex (VLDB 2022), with overlapped stages.
/// Threads: one call of Next at a time.
/// Ownership: the graph, its store and `control` must outlive the pipeline, and the pipeline must
/// outlive all minibatches that it delivered.
class FeedPipeline {
 public:
  /// Returns the next batch of seeds, or nullopt after the last. Called on the sampling thread. An
  /// error ends the pipeline.
  using NextSeeds = std::function<Result<std::optional<SeedBatch>>()>;

  /// Opens the pipeline and starts its threads. Errors: as FeatureCache::Open and Sampler::Create;
  /// kInvalidArgument, the dtype of the features is not supported, over_ranks does not cover all
  /// rows or has a cost that is not positive, or several arrays are combined with an option that
  /// supports one.
  static Result<std::unique_ptr<FeedPipeline>> Open(const GraphSnapshot& graph,
                                                    const FeedPipelineOptions& options,
                                                    NextSeeds next_seeds,
                                                    const JobControl& control);

  /// Stops all threads, at any point of their work. May leave superbatch files in the scratch
  /// folder.
  ~FeedPipeline();

  /// Returns the next minibatch, or nullopt after the last. Destroy minibatches that are no longer
  /// needed before the call, because they hold memory. Errors: of any stage, reported after
  /// everything before it was delivered; kInterrupted; kOutOfMemory, far more minibatches are held
  /// than the pipeline planned for.
  Result<std::optional<Minibatch>> Next();

  /// Returns statistics of the reads. Call after Next has returned nullopt.
  RowReaderStats reader_stats() const;

 private:
  class Impl;
  explicit FeedPipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal
}  // namespace rhizome
