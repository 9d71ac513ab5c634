#include "cache/feed/feed_profile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cache/feed/feature_decoder.h"
#include "cache/feed/lists_on_disk.h"
#include "cache/policy/replay.h"
#include "cache/policy/schedule_history.h"
#include "cache/pool/prefill_piece.h"
#include "cache/pool/rank_schedule.h"
#include "storage/base/bytes_left.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Bytes per access: trace and schedule of the superbatch that is being scheduled, plus the
/// schedule of the one in use.
constexpr std::uint64_t kScheduleBytes = 48 + 4;
constexpr std::uint64_t kCostScheduleBytes = 64 + 4;

/// Bytes per access of a superbatch that is sampled concurrently, if SchedulesApart: its trace,
/// including the spare capacity of the growing vector.
constexpr std::uint64_t kDrawnBytes = 2 * sizeof(CacheKey);

/// Bytes of a minibatch per row, besides features: number, pool plan and degree.
constexpr std::uint64_t kRowBytes = 48;

/// Limits for sampling minibatches to try superbatch lengths: their number, their share of the
/// job's minibatches (one in kProfiledShare), and the seconds of sampling.
constexpr std::uint64_t kProfiledMinibatches = 32;
constexpr std::uint64_t kProfiledShare = 4;
constexpr double kProfileSeconds = 1;
constexpr double kShortProfileSeconds = 0.1;  // if FeedJob::starts_soon

/// Memory of a profile without a memory limit. With a limit, half of the remaining memory is used.
constexpr std::uint64_t kProfileBytes = std::uint64_t{1} << 30;

/// Adds an eighth, because later minibatches may be larger than those that were sampled.
std::uint64_t WithMargin(std::uint64_t bytes) { return bytes + bytes / 8; }

/// Returns the number of rows that minibatches of `rows` rows hold outside the pool. Without a
/// pool, these are all rows. With a pool, they are the misses of all minibatches in memory, which
/// are usually fewer than the rows of one minibatch; if there are more, reading waits.
std::uint64_t HeldRowsOf(const FeedJob& job, std::uint64_t rows) {
  // A remote cache policy may miss all rows of other ranks.
  const bool pool = job.pipeline.policy != PolicyKind::kNone &&
                    job.fixed.cache_bytes.value_or(1) > 0 &&
                    !(job.pipeline.over_ranks && job.pipeline.over_ranks->keeper);
  return pool ? rows + rows / 4 : kMinibatchesAlive * rows;
}

/// Returns the bytes of metadata per pool frame: the history, and the keys in the frames. They are
/// part of a cache whose size is planned, and are added to a cache whose size is fixed.
std::uint64_t HistoryBytes(const FeedPipelineOptions& feed) {
  return (KeepsHistory(feed) ? ScheduleHistory::kBytesPerFrame : 0) +
         (feed.over_ranks ? RankSchedules::kBytesPerFrame : 0);
}

/// Returns the bytes of replies from other ranks, with a checksum per row: for the rows that a
/// minibatch reads, or for a piece of a prefill.
std::uint64_t ReplyBytes(const FeedPipelineOptions& feed, const ArrayEntry& features,
                         std::size_t kept_bytes, std::uint64_t minibatch_rows) {
  if (!feed.over_ranks) return 0;
  return std::max<std::uint64_t>(minibatch_rows, PrefillPiece(kept_bytes)) *
         (features.row_bytes() + sizeof(std::uint32_t));
}

/// Returns the bytes of the rows in a cache.
std::uint64_t PoolBytes(const FeedJob& job, const FeedPipelineOptions& feed,
                        std::uint64_t frame_bytes, std::uint64_t cache_bytes) {
  if (job.fixed.cache_bytes) return cache_bytes;
  return cache_bytes / (frame_bytes + HistoryBytes(feed)) * frame_bytes;
}

/// Returns the memory of the read buffers: none for mapped files (RowReader).
std::uint64_t StagingBytes(const FeedPipelineOptions& feed) {
  return feed.io == IoMaker::kMapped ? 0 : feed.staging_bytes;
}

/// Returns the bytes per edge of a minibatch: the neighbour and the requested edge attributes.
std::uint64_t EdgeBytes(const Minibatch& minibatch) {
  const auto if_any = [](const auto& values) {
    return values.empty() ? 0 : sizeof(values.front());
  };
  return 5 + if_any(minibatch.types) + if_any(minibatch.weights) + if_any(minibatch.edges);
}

/// Returns the memory needs of a job, given a sampled minibatch. `kept_bytes`: size of a row in the
/// pool.
MemoryNeeds NeedsOf(const FeedJob& job, const ArrayEntry& features, std::size_t kept_bytes,
                    bool lists_are_read, const Minibatch& minibatch) {
  const FeedPipelineOptions& feed = job.pipeline;
  const std::uint64_t rows = WithMargin(minibatch.rows.size());
  const std::uint64_t edges = WithMargin(minibatch.neighbors.size());
  MemoryNeeds needs;
  needs.held_rows = HeldRowsOf(job, rows);
  needs.working_bytes = StagingBytes(feed) + 4 * features.rows +
                        PolicyBytesPerKey(feed.policy) * features.rows +
                        needs.held_rows * kept_bytes +
                        kMinibatchesAlive * (rows * kRowBytes + edges * EdgeBytes(minibatch)) +
                        rows * 40 + edges * (19 + EdgeBytes(minibatch));  // while sampling
  needs.working_bytes += ReplyBytes(feed, features, kept_bytes, rows);
  if (feed.over_ranks && feed.over_ranks->keeper)
    needs.working_bytes += RemoteCachePolicy::kBytesPerKey * features.rows;
  if (job.compute_bytes) needs.working_bytes += job.compute_bytes(minibatch);
  if (KeepsHistory(feed)) needs.working_bytes += ScheduleHistory::kBytesPerKey * features.rows;
  if (job.fixed.cache_bytes) {
    const std::uint64_t frames = std::min(features.rows, *job.fixed.cache_bytes / kept_bytes);
    needs.working_bytes += frames * HistoryBytes(feed);
  }
  needs.schedule_bytes = rows * (ScheduleBytesPerAccess(feed) + job.other_schedule_bytes);
  needs.cacheable_bytes = features.rows * (features.row_bytes() + HistoryBytes(feed));
  if (lists_are_read) {
    const NeighborCache::Needs cache =
        ListsOnDisk::CacheNeeds(job.graph, feed.sampler.sampler.direction);
    needs.neighbor_full_bytes = cache.full_bytes;
    needs.neighbor_table_bytes = cache.table_bytes;
    needs.neighbor_build_bytes = cache.build_bytes;
    needs.working_bytes += ListsOnDisk::WorkingBytes(edges);
  }
  return needs;
}

/// Merges the needs of two kinds of minibatches that alternate in time, by taking the maximum.
void TakeLarger(const MemoryNeeds& other, MemoryNeeds& needs) {
  needs.held_rows = std::max(needs.held_rows, other.held_rows);
  needs.working_bytes = std::max(needs.working_bytes, other.working_bytes);
  needs.schedule_bytes = std::max(needs.schedule_bytes, other.schedule_bytes);
}

/// Returns the seeds of the first validation minibatch. The plan must have one, and exactly one
/// minibatch must have been taken from it.
SeedBatch FirstValid(EpochPlan plan) {
  std::uint32_t epoch = 0;
  while (!plan.counts().HasValid(epoch)) ++epoch;  // the last epoch has validation minibatches
  plan.Skip(plan.Before(epoch) + plan.train_batches() - 1);
  return *plan.Next();
}

/// Returns whether the superbatch length affects the reads and a trial can estimate the effect. A
/// trial models the local disk, but not other ranks.
bool MayTry(const FeedJob& job) {
  return job.fixed.superbatch == 0 && KnowsTheFuture(job.pipeline.policy) &&
         job.pipeline.io != IoMaker::kMapped && !job.pipeline.over_ranks;
}

/// Returns whether the rows of the whole array fit in the cache, beside the schedules' share of the
/// memory (PlanMemory). Each row is then read once with superbatches of any length.
bool AllRowsFit(const FeedJob& job, const MemoryNeeds& needs) {
  if (job.fixed.cache_bytes) return *job.fixed.cache_bytes >= needs.cacheable_bytes;
  if (job.memory_bytes == 0) return kDefaultCacheBytes >= needs.cacheable_bytes;
  const std::uint64_t left = BytesLeft(
      job.memory_bytes, needs.held_bytes + needs.working_bytes + needs.neighbor_full_bytes);
  return std::min(kDefaultCacheBytes, left - left / 4) >= needs.cacheable_bytes;
}

/// Returns the memory settings that are fixed. In distributed training, sampling and reading never
/// take turns: a rank whose cache is emptied between superbatches would read rows that the plans of
/// the other ranks do not expect.
FixedMemory FixedOf(const FeedJob& job) {
  FixedMemory fixed = job.fixed;
  if (job.pipeline.over_ranks) fixed.in_turn = false;
  return fixed;
}

Result<std::shared_ptr<ListsOnDisk>> OpenLists(const GraphSnapshot& graph,
                                               const FeedPipelineOptions& options,
                                               std::uint64_t cache_bytes, const Path& dump,
                                               const JobControl& control) {
  if (options.sampler.no_edges) return std::shared_ptr<ListsOnDisk>();
  RHIZOME_ASSIGN_OR_RETURN(auto lists, ListsOnDisk::Open(graph, options.sampler.sampler.direction,
                                                         cache_bytes, dump, options.io, control));
  return std::shared_ptr<ListsOnDisk>(std::move(lists));
}

}  // namespace

std::uint64_t ScheduleBytesPerAccess(const FeedPipelineOptions& feed) {
  const bool cost = feed.policy == PolicyKind::kCost;
  return (cost ? kCostScheduleBytes : kScheduleBytes) + (SchedulesApart(feed) ? kDrawnBytes : 0);
}

Result<FeedProfile> FeedProfile::Measure(const FeedJob& job,
                                         std::shared_ptr<const NeighborSource> neighbors,
                                         EpochPlan plan, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, job.graph.store().OpenArray(job.pipeline.features));
  const ArrayEntry& features = array->entry();
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(features, job.pipeline.normalize));
  RHIZOME_ASSIGN_OR_RETURN(const MinibatchSampler sampler,
                           MinibatchSampler::Create(job.graph, job.pipeline.sampler, neighbors));
  const std::uint64_t minibatches = job.minibatches > 0 ? job.minibatches : plan.minibatches();
  RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*plan.Next()));
  FeedProfile profile;
  profile.needs_ = NeedsOf(job, features, decoder.row_bytes(), neighbors != nullptr, minibatch);
  if (job.pipeline.sampler.valid_sampler && plan.valid_batches() > 0) {
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch measured, sampler.Sample(FirstValid(plan)));
    TakeLarger(NeedsOf(job, features, decoder.row_bytes(), neighbors != nullptr, measured),
               profile.needs_);
  }
  profile.needs_.minibatches = minibatches;
  profile.needs_.held_bytes = job.held_bytes ? job.held_bytes() : 0;
  AddStep(minibatch, profile.trace_);
  profile.kept_bytes_ = std::max(decoder.row_bytes(), decoder.stored_row_bytes());
  profile.frame_bytes_ =
      profile.kept_bytes_ + (job.fixed.cache_bytes ? 0 : HistoryBytes(job.pipeline));
  profile.prior_ = job.pipeline.prior;
  if (MayTry(job) && !(job.starts_soon && AllRowsFit(job, profile.needs_)))
    RHIZOME_RETURN_IF_ERROR(profile.SampleMore(sampler, plan, job, control));
  return profile;
}

Status FeedProfile::SampleMore(const MinibatchSampler& sampler, EpochPlan& plan, const FeedJob& job,
                               const JobControl& control) {
  const Stopwatch watch;
  const std::uint64_t limit = job.memory_bytes;
  const std::uint64_t room = limit == 0 ? kProfileBytes : BytesLeft(limit, needs_.held_bytes) / 2;
  // Bytes of a minibatch: its part of the trace, and half of its schedules.
  const std::uint64_t bytes = trace_.keys.size() * sizeof(CacheKey) + needs_.schedule_bytes / 2;
  const std::uint64_t most = std::min({kProfiledMinibatches, needs_.minibatches / kProfiledShare,
                                       room / std::max<std::uint64_t>(bytes, 1)});
  const double seconds = job.starts_soon ? kShortProfileSeconds : kProfileSeconds;
  while (trace_.steps() < most && watch.seconds() < seconds) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const std::optional<SeedBatch> seeds = plan.Next();
    if (!seeds) break;
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*seeds));
    AddStep(minibatch, trace_);
  }
  if (trace_.steps() < 2) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const auto array, job.graph.store().OpenArray(job.pipeline.features));
  IoQueueOptions io{.maker = job.pipeline.io};
  RHIZOME_ASSIGN_OR_RETURN(io.depth, MeasureDepth(*array, io));
  depth_ = io.depth;
  RHIZOME_ASSIGN_OR_RETURN(read_cost_, MeasureReadCost(*array, io));
  policy_ = {.kind = job.pipeline.policy,
             .frame_count = 0,
             .key_count = job.graph.vertex_count(),
             .unit_bytes = array->entry().row_bytes(),
             .cost = *read_cost_};
  return Status::Ok();
}

SuperbatchTrial FeedProfile::trial() {
  return {.most = static_cast<std::uint32_t>(trace_.steps() / 2),
          .seconds = [this](std::uint32_t superbatch, std::uint64_t cache_bytes) {
            const auto [at, is_new] = tried_.try_emplace({superbatch, cache_bytes}, 0);
            if (is_new) at->second = ReadSeconds(superbatch, cache_bytes);
            return at->second;
          }};
}

double FeedProfile::ReadSeconds(std::uint32_t superbatch, std::uint64_t cache_bytes) {
  PolicyOptions policy = policy_;
  policy.frame_count =
      static_cast<std::uint32_t>(std::min(cache_bytes / frame_bytes_, policy.key_count));
  const Result<SuperbatchReplay> replay = ReplaySuperbatches(trace_, superbatch, policy, prior_);
  if (replay) return replay->step_seconds;
  trial_status_ = replay.error();
  return std::numeric_limits<double>::infinity();
}

FeedProfileReport FeedProfile::report() const {
  FeedProfileReport report{.minibatches = trace_.steps(), .depth = depth_, .tried = {}};
  for (const auto& [what, seconds] : tried_)
    report.tried.push_back(
        {.superbatch = what.first, .cache_bytes = what.second, .read_seconds = seconds});
  return report;
}

Status FeedPlan::Prepare(const GraphSnapshot& graph, const Path& scratch,
                         const JobControl& control) {
  pipeline.scratch = scratch;
  const Path dump = memory.in_turn ? scratch / "neighbor-cache" : Path();
  RHIZOME_ASSIGN_OR_RETURN(pipeline.lists,
                           OpenLists(graph, pipeline, memory.neighbor_cache_bytes, dump, control));
  return Status::Ok();
}

// Steps: (1) profile the job on its first minibatches, without a neighbour cache (FeedProfile); (2)
// divide the memory, trying superbatch lengths if possible (PlanMemory); (3) set the options of the
// pipeline that follow from the division: held rows, superbatch, overlap, prior and cache size.
Result<FeedPlan> PlanFeed(const FeedJob& job, const EpochPlan& plan, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenLists(job.graph, job.pipeline, 0, {}, control));
  auto neighbors = lists == nullptr ? nullptr : lists->source();
  RHIZOME_ASSIGN_OR_RETURN(FeedProfile profile,
                           FeedProfile::Measure(job, std::move(neighbors), plan, control));
  FeedPlan made{.pipeline = job.pipeline, .memory = {}, .needs = profile.needs(), .profile = {}};
  RHIZOME_ASSIGN_OR_RETURN(
      made.memory, PlanMemory(job.memory_bytes, FixedOf(job), profile.needs(), profile.trial()));
  RHIZOME_RETURN_IF_ERROR(profile.trial_status());
  made.profile = profile.report();
  made.pipeline.held_rows = made.memory.held_rows;
  made.pipeline.superbatch = made.memory.superbatch;
  if (made.memory.in_turn) {
    made.pipeline.overlap = Overlap::kChangeset;
  } else if (made.pipeline.overlap == Overlap::kChangeset) {
    made.pipeline.overlap = Overlap::kAll;
  }
  if (!KeepsHistory(made.pipeline)) made.pipeline.prior = Prior::kNone;
  made.pipeline.cache_bytes =
      PoolBytes(job, made.pipeline, profile.kept_bytes(), made.memory.cache_bytes);
  made.pipeline.read_cost = profile.read_cost();
  made.pipeline.depth = profile.depth();
  return made;
}

}  // namespace internal
}  // namespace rhizome
