#include "rhizome/cache/feed_profile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rhizome/cache/feature_decoder.h"
#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/cache/rank_schedule.h"
#include "rhizome/cache/replay.h"
#include "rhizome/cache/schedule_history.h"
#include "rhizome/storage/bytes_left.h"
#include "rhizome/storage/stopwatch.h"

namespace rhizome::inline internal {
namespace {

/// Bytes for each access: of the trace and schedule of the superbatch that is being scheduled, plus
/// the schedule of the one in use.
constexpr std::uint64_t kScheduleBytes = 48 + 4;
constexpr std::uint64_t kCostScheduleBytes = 64 + 4;

/// Bytes for each access of a superbatch that is sampled meanwhile, where SchedulesApart: its trace
/// with the room that it grows into.
constexpr std::uint64_t kDrawnBytes = 2 * sizeof(CacheKey);

/// Bytes of a minibatch for each of its rows, besides features: number, pool plan and degree.
constexpr std::uint64_t kRowBytes = 48;

/// Limits of the minibatches that are sampled to try superbatches: their number, one part in
/// kProfiledShare of the job's, and the seconds that sampling takes.
constexpr std::uint64_t kProfiledMinibatches = 32;
constexpr std::uint64_t kProfiledShare = 4;
constexpr double kProfileSeconds = 1;

/// Memory of a profile if there is no limit; with a limit, half of what is left is used.
constexpr std::uint64_t kProfileBytes = std::uint64_t{1} << 30;

/// Adds an eighth, because later minibatches may be larger than those that were sampled.
std::uint64_t WithMargin(std::uint64_t bytes) { return bytes + bytes / 8; }

/// Returns the rows that minibatches of `rows` rows hold beside the pool. Without a pool these are
/// all rows. With a pool they are the misses of all minibatches that are alive, which are fewer
/// than the rows of one minibatch that misses all (and if they are not, reading waits).
std::uint64_t HeldRowsOf(const FeedJob& job, std::uint64_t rows) {
  // Rows of other ranks may all be missed under the policies of others.
  const bool pool = job.pipeline.policy != PolicyKind::kNone &&
                    job.fixed.cache_bytes.value_or(1) > 0 &&
                    !(job.pipeline.over_ranks && job.pipeline.over_ranks->keeper);
  return pool ? rows + rows / 4 : kMinibatchesAlive * rows;
}

/// Returns the bytes of what is known about each frame of the pool: a history, and what it holds.
/// They are part of a cache whose size is chosen, and come on top of one whose size was given.
std::uint64_t HistoryBytes(const FeedPipelineOptions& feed) {
  return (KeepsHistory(feed) ? ScheduleHistory::kBytesPerFrame : 0) +
         (feed.over_ranks ? RankSchedules::kBytesPerFrame : 0);
}

/// Returns the bytes of replies of other ranks, with a checksum for each row: of the rows that a
/// minibatch reads, or of a piece of a prefill.
std::uint64_t ReplyBytes(const FeedPipelineOptions& feed, const ArrayEntry& features,
                         std::size_t kept_bytes, std::uint64_t minibatch_rows) {
  if (!feed.over_ranks) return 0;
  return std::max<std::uint64_t>(minibatch_rows, PrefillPiece(kept_bytes)) *
         (features.row_bytes() + sizeof(std::uint32_t));
}

/// Returns the bytes of a cache's rows.
std::uint64_t PoolBytes(const FeedJob& job, const FeedPipelineOptions& feed,
                        std::uint64_t frame_bytes, std::uint64_t cache_bytes) {
  if (job.fixed.cache_bytes) return cache_bytes;
  return cache_bytes / (frame_bytes + HistoryBytes(feed)) * frame_bytes;
}

/// Returns the memory that rows are read into: none for mapped files (RowReader).
std::uint64_t StagingBytes(const FeedPipelineOptions& feed) {
  return feed.io == IoMaker::kMapped ? 0 : feed.staging_bytes;
}

/// Returns the bytes of an edge of a minibatch: its neighbour, and the facts that were asked for.
std::uint64_t EdgeBytes(const Minibatch& minibatch) {
  const auto if_any = [](const auto& values) {
    return values.empty() ? 0 : sizeof(values.front());
  };
  return 5 + if_any(minibatch.types) + if_any(minibatch.weights) + if_any(minibatch.edges);
}

/// `kept_bytes`: of a row as the pool has it.
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
                        rows * 40 + edges * (19 + EdgeBytes(minibatch));  // being sampled
  needs.working_bytes += ReplyBytes(feed, features, kept_bytes, rows);
  if (feed.over_ranks && feed.over_ranks->keeper)
    needs.working_bytes += RemoteKeeper::kBytesPerKey * features.rows;
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

/// The needs of two kinds of minibatches that come one after another.
void TakeLarger(const MemoryNeeds& other, MemoryNeeds& needs) {
  needs.held_rows = std::max(needs.held_rows, other.held_rows);
  needs.working_bytes = std::max(needs.working_bytes, other.working_bytes);
  needs.schedule_bytes = std::max(needs.schedule_bytes, other.schedule_bytes);
}

/// Returns the first validation minibatch of a plan that has taken one minibatch and has some.
SeedBatch FirstValid(EpochPlan plan) {
  std::uint32_t epoch = 0;
  while (!plan.counts().HasValid(epoch)) ++epoch;  // the last epoch has
  plan.Skip(plan.Before(epoch) + plan.train_batches() - 1);
  return *plan.Next();
}

/// Returns whether the length of a superbatch affects what is read, and a trial can tell: it knows
/// the disk, and no other rank.
bool MayTry(const FeedJob& job) {
  return job.fixed.superbatch == 0 && KnowsTheFuture(job.pipeline.policy) &&
         job.pipeline.io != IoMaker::kMapped && !job.pipeline.over_ranks;
}

/// Returns what is fixed. Over ranks nothing is done in turn: a rank whose memory is emptied
/// between superbatches would read what the others' plans do not know of.
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
  const std::uint64_t minibatches = plan.minibatches();
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
  profile.kept_bytes_ = decoder.row_bytes();
  profile.frame_bytes_ =
      profile.kept_bytes_ + (job.fixed.cache_bytes ? 0 : HistoryBytes(job.pipeline));
  profile.prior_ = job.pipeline.prior;
  if (MayTry(job)) RHIZOME_RETURN_IF_ERROR(profile.SampleMore(sampler, plan, job, control));
  return profile;
}

Status FeedProfile::SampleMore(const MinibatchSampler& sampler, EpochPlan& plan, const FeedJob& job,
                               const JobControl& control) {
  const Stopwatch watch;
  const std::uint64_t limit = job.memory_bytes;
  const std::uint64_t room = limit == 0 ? kProfileBytes : BytesLeft(limit, needs_.held_bytes) / 2;
  // The bytes of a minibatch: its part of the trace, and half of its schedules.
  const std::uint64_t bytes = trace_.keys.size() * sizeof(CacheKey) + needs_.schedule_bytes / 2;
  const std::uint64_t most = std::min({kProfiledMinibatches, needs_.minibatches / kProfiledShare,
                                       room / std::max<std::uint64_t>(bytes, 1)});
  while (trace_.steps() < most && watch.seconds() < kProfileSeconds) {
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

}  // namespace rhizome::inline internal
