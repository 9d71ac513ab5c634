#include "cache/feed/feed_profile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cache/feed/cache_division.h"
#include "cache/feed/feature_decoder.h"
#include "cache/feed/lists_on_disk.h"
#include "cache/feed/row_types.h"
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

/// Limit on the accesses of the sampled minibatches if FeedJob::starts_soon, as each length of
/// superbatches that is tried replays them.
constexpr std::uint64_t kShortProfileAccesses = std::uint64_t{1} << 17;

/// To divide memory among arrays, about kDividedAccesses of the first accesses are used, and of
/// these a sample of about kReplayedAccesses, which is replayed for each step of the division.
constexpr std::uint64_t kDividedAccesses = std::uint64_t{1} << 18;
constexpr std::uint64_t kReplayedAccesses = std::uint64_t{1} << 15;

/// Part of a minibatch's rows that one of several arrays must at least be able to hold outside its
/// cache, because the next minibatch may have more vertices of its types.
constexpr std::uint64_t kLeastHeldShare = 4;

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

/// Returns the bytes of the pairs and negatives of a minibatch.
std::uint64_t PairBytes(const Minibatch& minibatch) {
  std::uint64_t bytes = minibatch.pairs.size() * sizeof(MinibatchPair);
  for (const auto& side : minibatch.negatives)
    for (const MinibatchNegatives& negatives : side)
      bytes += negatives.vertices.size() * sizeof(std::uint32_t);
  return bytes;
}

/// Returns the rows that a minibatch requests from each array.
std::vector<std::uint64_t> RowsOfArrays(const InputDivision& division, const Minibatch& minibatch) {
  if (!division.by_type()) return {WithMargin(minibatch.rows.size())};
  std::vector<std::uint64_t> rows;
  for (const auto& vertices : division.Divide(minibatch)) {
    rows.push_back(
        std::max(WithMargin(vertices.size()), WithMargin(minibatch.rows.size()) / kLeastHeldShare));
  }
  return rows;
}

/// Returns the bytes of the checksums of an array's rows (RowSums): none for chunks of a bound
/// array that are not stored.
std::uint64_t SumsBytes(const ChunkArray& array) {
  const ArrayEntry& entry = array.entry();
  const ChunkSlots& slots = array.slots();
  return sizeof(std::uint32_t) * (slots.all() ? entry.rows : slots.size() * entry.chunk_rows);
}

/// Adds the memory needs of an array, from which a minibatch requests `rows` rows.
void AddArray(const FeedJob& job, const ProfiledArray& array, std::uint64_t rows,
              MemoryNeeds& needs) {
  const FeedPipelineOptions& feed = job.pipeline;
  const ArrayEntry& entry = array.entry;
  const std::uint64_t held_rows = HeldRowsOf(job, rows);
  needs.held_rows += held_rows;
  needs.working_bytes += array.staging_bytes + SumsBytes(*array.array) +
                         PolicyBytesPerKey(feed.policy) * entry.rows +
                         held_rows * array.decoded_bytes;
  needs.working_bytes += ReplyBytes(feed, entry, array.decoded_bytes, rows);
  if (feed.over_ranks && feed.over_ranks->keeper)
    needs.working_bytes += RemoteCachePolicy::kBytesPerKey * entry.rows;
  if (KeepsHistory(feed)) needs.working_bytes += ScheduleHistory::kBytesPerKey * entry.rows;
  if (job.fixed.cache_bytes) {
    const std::uint64_t frames = std::min(entry.rows, *job.fixed.cache_bytes / array.decoded_bytes);
    needs.working_bytes += frames * HistoryBytes(feed);
  }
  needs.schedule_bytes += rows * (ScheduleBytesPerAccess(feed) + job.other_schedule_bytes);
  needs.cacheable_bytes += array.rows * (entry.row_bytes() + HistoryBytes(feed));
}

/// Returns the memory needs of a job, given a sampled minibatch, and records the rows that each
/// array holds outside its cache.
MemoryNeeds NeedsOf(const FeedJob& job, const InputDivision& division, bool lists_are_read,
                    const Minibatch& minibatch, std::vector<ProfiledArray>& arrays) {
  const std::uint64_t rows = WithMargin(minibatch.rows.size());
  const std::uint64_t edges = WithMargin(minibatch.neighbors.size());
  MemoryNeeds needs;
  const std::vector<std::uint64_t> requested = RowsOfArrays(division, minibatch);
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    AddArray(job, arrays[a], requested[a], needs);
    arrays[a].held_rows = std::max(arrays[a].held_rows, HeldRowsOf(job, requested[a]));
  }
  needs.working_bytes +=
      kMinibatchesAlive * (rows * kRowBytes + edges * EdgeBytes(minibatch) + PairBytes(minibatch)) +
      rows * 40 + edges * (19 + EdgeBytes(minibatch));  // while sampling
  if (job.compute_bytes) needs.working_bytes += job.compute_bytes(minibatch);
  if (lists_are_read) {
    const NeighborCache::Needs cache =
        ListsOnDisk::CacheNeeds(job.graph, job.pipeline.sampler.sampler.direction);
    needs.neighbor_full_bytes = cache.full_bytes;
    needs.neighbor_table_bytes = cache.table_bytes;
    needs.neighbor_build_bytes = cache.build_bytes;
    const MinibatchSamplerOptions& sampling = job.pipeline.sampler;
    needs.working_bytes += std::max(
        ListsOnDisk::WorkingBytes(sampling.sampler, edges),
        ListsOnDisk::WorkingBytes(sampling.valid_sampler.value_or(sampling.sampler), edges));
    needs.swept_bytes = WithMargin(ListsOnDisk::SweptBytes(minibatch));
  }
  return needs;
}

/// Returns the number of rows of each array that vertices of its types have.
std::vector<std::uint64_t> RowCounts(const GraphSnapshot& graph, const InputDivision& division) {
  std::vector<std::uint64_t> rows(division.arrays().size(), 0);
  const std::vector<std::uint64_t> of_types = RowTypes(graph).Counts();
  for (std::size_t type = 0; type < of_types.size(); ++type) {
    const auto& array = division.array_of_type()[type];
    if (array) rows[*array] += of_types[type];
  }
  return rows;
}

/// Opens the arrays of a job.
Result<std::vector<ProfiledArray>> OpenProfiled(const FeedJob& job, const InputDivision& division) {
  std::vector<ProfiledArray> arrays;
  const std::size_t staging = StagingBytesOf(StagingBytes(job.pipeline), division.arrays().size());
  for (const std::string& name : division.arrays()) {
    RHIZOME_ASSIGN_OR_RETURN(auto opened, job.graph.store().OpenArray(name));
    RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                             FeatureDecoder::Create(opened->entry(), job.pipeline.normalize));
    ProfiledArray& array = arrays.emplace_back();
    array.entry = opened->entry();
    array.array = std::move(opened);
    array.rows = array.entry.rows;
    array.staging_bytes = job.pipeline.io == IoMaker::kMapped ? 0 : staging;
    array.decoded_bytes = decoder.row_bytes();
    array.kept_bytes = std::max(decoder.row_bytes(), decoder.stored_row_bytes());
    array.frame_bytes = array.kept_bytes + (job.fixed.cache_bytes ? 0 : HistoryBytes(job.pipeline));
  }
  if (!division.by_type()) return arrays;
  const std::vector<std::uint64_t> rows = RowCounts(job.graph, division);
  for (std::size_t a = 0; a < arrays.size(); ++a) arrays[a].rows = rows[a];
  return arrays;
}

/// Merges the needs of two kinds of minibatches that alternate in time, by taking the maximum.
void TakeLarger(const MemoryNeeds& other, MemoryNeeds& needs) {
  needs.held_rows = std::max(needs.held_rows, other.held_rows);
  needs.working_bytes = std::max(needs.working_bytes, other.working_bytes);
  needs.schedule_bytes = std::max(needs.schedule_bytes, other.schedule_bytes);
  needs.swept_bytes = std::max(needs.swept_bytes, other.swept_bytes);
}

/// Returns the seeds of the first validation minibatch of a plan that has one and is at its start.
SeedBatch FirstValid(EpochPlan plan) {
  std::uint32_t epoch = 0;
  while (!plan.counts().HasValid(epoch)) ++epoch;  // the last epoch has validation minibatches
  plan.Skip(plan.Before(epoch) + plan.train_batches());
  return *plan.Next();
}

/// Returns the first batch of a stream, which is not empty.
Result<SeedBatch> FirstOf(const FeedPipeline::NextSeeds& next) {
  RHIZOME_ASSIGN_OR_RETURN(std::optional<SeedBatch> seeds, next());
  RHIZOME_CHECK(seeds.has_value());
  return *std::move(seeds);
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

// Steps: (1) open the arrays; (2) sample the first minibatch, and the first validation minibatch if
// there is one, for the memory that one takes; (3) sample more minibatches if lengths of
// superbatches can be tried, or memory is divided among arrays.
Result<FeedProfile> FeedProfile::Measure(const FeedJob& job,
                                         std::shared_ptr<const NeighborSource> neighbors,
                                         const SeedStream& seeds, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(InputDivision division, InputDivision::Create(job.graph, job.pipeline));
  FeedProfile profile(std::move(division));
  RHIZOME_ASSIGN_OR_RETURN(profile.arrays_, OpenProfiled(job, profile.division_));
  profile.traces_.resize(profile.arrays_.size());
  MinibatchSamplerOptions sampling = job.pipeline.sampler;
  sampling.vertex_types = sampling.vertex_types || profile.by_type();
  RHIZOME_ASSIGN_OR_RETURN(const MinibatchSampler sampler,
                           MinibatchSampler::Create(job.graph, sampling, neighbors));
  const std::uint64_t minibatches = job.minibatches > 0 ? job.minibatches : seeds.minibatches;
  RHIZOME_ASSIGN_OR_RETURN(const SeedBatch first, FirstOf(seeds.next));
  RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(first));
  const auto needs = [&](const Minibatch& measured) {
    return NeedsOf(job, profile.division_, neighbors != nullptr, measured, profile.arrays_);
  };
  profile.needs_ = needs(minibatch);
  if (seeds.first_valid) {
    RHIZOME_ASSIGN_OR_RETURN(const SeedBatch valid, FirstOf(seeds.first_valid));
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch measured, sampler.Sample(valid));
    TakeLarger(needs(measured), profile.needs_);
  }
  profile.needs_.minibatches = minibatches;
  profile.needs_.held_bytes = job.held_bytes ? job.held_bytes() : 0;
  profile.division_.AddStep(minibatch, profile.traces_);
  profile.prior_ = job.pipeline.prior;
  const bool divides = profile.by_type() && job.pipeline.policy != PolicyKind::kNone;
  if (profile.arrays_.empty()) return profile;
  if ((MayTry(job) || divides) && !(job.starts_soon && AllRowsFit(job, profile.needs_)))
    RHIZOME_RETURN_IF_ERROR(profile.SampleMore(sampler, seeds, job, control));
  profile.may_try_ = MayTry(job);
  return profile;
}

Status FeedProfile::SampleMore(const MinibatchSampler& sampler, const SeedStream& seeds,
                               const FeedJob& job, const JobControl& control) {
  const Stopwatch watch;
  const std::uint64_t limit = job.memory_bytes;
  const std::uint64_t room = limit == 0 ? kProfileBytes : BytesLeft(limit, needs_.held_bytes) / 2;
  // Bytes of a minibatch: its part of the trace, and half of its schedules.
  std::uint64_t bytes = needs_.schedule_bytes / 2;
  for (const Trace& trace : traces_) bytes += trace.keys.size() * sizeof(CacheKey);
  const std::uint64_t most = std::min({kProfiledMinibatches, needs_.minibatches / kProfiledShare,
                                       room / std::max<std::uint64_t>(bytes, 1)});
  const double seconds = job.starts_soon ? kShortProfileSeconds : kProfileSeconds;
  const auto enough = [&] {
    std::uint64_t accesses = 0;
    for (const Trace& trace : traces_) accesses += trace.keys.size();
    return job.starts_soon && steps() > 1 && accesses >= kShortProfileAccesses;
  };
  while (steps() < most && watch.seconds() < seconds && !enough()) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(const std::optional<SeedBatch> next, seeds.next());
    if (!next) break;
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*next));
    division_.AddStep(minibatch, traces_);
  }
  if (steps() < 2) return Status::Ok();
  row_count_ = job.graph.vertex_count();
  IoQueueOptions io{.maker = job.pipeline.io};
  if (job.pipeline.io != IoMaker::kMapped) {
    RHIZOME_ASSIGN_OR_RETURN(io.depth, MeasureDepth(*arrays_.front().array, io));
    depth_ = io.depth;
  }
  for (ProfiledArray& array : arrays_) {
    if (job.pipeline.io != IoMaker::kMapped) {
      RHIZOME_ASSIGN_OR_RETURN(array.read_cost, MeasureReadCost(*array.array, io));
    }
    array.policy = {.kind = job.pipeline.policy,
                    .frame_count = 0,
                    .key_count = row_count_,
                    .unit_bytes = array.entry.row_bytes(),
                    .cost = array.read_cost.value_or(ReadCost())};
  }
  return Status::Ok();
}

SuperbatchTrial FeedProfile::trial() {
  return {.most = may_try_ ? static_cast<std::uint32_t>(steps() / 2) : 0,
          .seconds = [this](std::uint32_t superbatch, std::uint64_t cache_bytes) {
            const auto [at, is_new] = tried_.try_emplace({superbatch, cache_bytes}, 0);
            if (is_new) at->second = ReadSeconds(superbatch, cache_bytes);
            return at->second;
          }};
}

double FeedProfile::ReadSeconds(std::uint32_t superbatch, std::uint64_t cache_bytes) {
  double seconds = 0;
  const Result<std::vector<std::uint64_t>> parts = PartsForTrial(cache_bytes);
  for (std::size_t a = 0; parts && a < arrays_.size(); ++a) {
    const auto replay = Replay(a, traces_[a], row_count_, superbatch, (*parts)[a]);
    if (!replay) {
      trial_status_ = replay.error();
      break;
    }
    seconds += replay->step_seconds;
  }
  if (!parts) trial_status_ = parts.error();
  return trial_status_.ok() ? seconds : std::numeric_limits<double>::infinity();
}

Result<SuperbatchReplay> FeedProfile::Replay(std::size_t array, const Trace& trace,
                                             std::uint64_t key_count, std::uint32_t superbatch,
                                             std::uint64_t cache_bytes) const {
  PolicyOptions policy = arrays_[array].policy;
  policy.key_count = key_count;
  policy.frame_count = static_cast<std::uint32_t>(
      std::min(cache_bytes / arrays_[array].frame_bytes, policy.key_count));
  return ReplaySuperbatches(trace, superbatch, policy, prior_);
}

/// Returns the division of `cache_bytes` for trials of superbatches. All trials divide the memory
/// in the same ratio, because to divide it takes more time than a trial.
Result<std::vector<std::uint64_t>> FeedProfile::PartsForTrial(std::uint64_t cache_bytes) {
  if (!by_type()) return std::vector{cache_bytes};
  if (trial_parts_.empty()) {
    const auto longest = static_cast<std::uint32_t>(std::max<std::size_t>(steps() / 2, 1));
    RHIZOME_ASSIGN_OR_RETURN(const auto parts, Divide(longest, cache_bytes));
    for (const std::uint64_t part : parts)
      trial_parts_.push_back(static_cast<double>(part) /
                             static_cast<double>(std::max<std::uint64_t>(cache_bytes, 1)));
  }
  std::vector<std::uint64_t> parts;
  for (const double part : trial_parts_)
    parts.push_back(static_cast<std::uint64_t>(part * static_cast<double>(cache_bytes)));
  return parts;
}

Result<std::vector<std::uint64_t>> FeedProfile::Divide(std::uint32_t superbatch,
                                                       std::uint64_t cache_bytes) const {
  std::vector<DividedArray> divided;
  const TracesOfDivision of_division = TracesForDivision();
  const std::uint64_t one_in = of_division.one_in;
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    const std::uint64_t row_bytes = arrays_[a].entry.row_bytes();
    DividedArray& array = divided.emplace_back();
    array.most_bytes = std::max<std::uint64_t>(arrays_[a].rows, 1) * arrays_[a].frame_bytes;
    array.requested_bytes = traces_[a].keys.size() * row_bytes;
    array.bytes_read = [&, a, row_bytes](std::uint64_t bytes) -> Result<std::uint64_t> {
      if (steps() < 2) return 0;  // nothing is known about requests that repeat
      const auto& [trace, key_count] = of_division.arrays[a];
      const std::size_t replayed = trace.steps();
      const auto length = std::min<std::size_t>(superbatch, replayed / 2);
      if (bytes == 0) return trace.offsets[replayed / length * length] * one_in * row_bytes;
      RHIZOME_ASSIGN_OR_RETURN(
          const SuperbatchReplay replay,
          Replay(a, trace, key_count, static_cast<std::uint32_t>(length), bytes / one_in));
      return replay.rows * one_in * row_bytes;
    };
  }
  return DivideCache(cache_bytes, divided);
}

/// Returns a sample of the first steps of the traces, so that a replay is short. A policy that
/// depends on the distance of rows gets all rows of these steps.
FeedProfile::TracesOfDivision FeedProfile::TracesForDivision() const {
  std::vector<Trace> traces(traces_.size());
  std::uint64_t accesses = 0;
  for (std::size_t s = 0; s < steps() && (s < 2 || accesses < kDividedAccesses); ++s) {
    for (std::size_t a = 0; a < traces.size(); ++a) {
      traces[a].AddStep(traces_[a].step(s));
      accesses += traces_[a].step(s).size();
    }
  }
  TracesOfDivision made;
  const bool all = arrays_.front().policy.kind == PolicyKind::kCost;
  if (!all) made.one_in = std::max<std::uint64_t>(accesses / kReplayedAccesses, 1);
  for (Trace& trace : traces)
    made.arrays.push_back(all ? SampledTrace{std::move(trace), row_count_}
                              : SampleKeys(trace, made.one_in));
  return made;
}

FeedProfileReport FeedProfile::report() const {
  FeedProfileReport report{.minibatches = steps(), .depth = depth_, .tried = {}};
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
// pipeline that follow from the division: held rows, superbatch, overlap, prior and cache size; (4)
// divide the cache memory among several arrays.
Result<FeedPlan> PlanFeed(const FeedJob& job, const SeedStream& seeds, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenLists(job.graph, job.pipeline, 0, {}, control));
  auto neighbors = lists == nullptr ? nullptr : lists->source();
  RHIZOME_ASSIGN_OR_RETURN(FeedProfile profile,
                           FeedProfile::Measure(job, std::move(neighbors), seeds, control));
  FeedPlan made{.pipeline = job.pipeline,
                .memory = {},
                .needs = profile.needs(),
                .profile = {},
                .inputs = {}};
  RHIZOME_ASSIGN_OR_RETURN(
      made.memory, PlanMemory(job.memory_bytes, FixedOf(job), profile.needs(), profile.trial()));
  RHIZOME_RETURN_IF_ERROR(profile.trial_status());
  made.profile = profile.report();
  made.pipeline.held_rows = made.memory.held_rows;
  made.pipeline.superbatch = made.memory.superbatch;
  made.pipeline.swept = made.memory.swept;
  made.needs.working_bytes += (made.memory.swept - 1) * made.needs.swept_bytes;
  if (made.memory.in_turn) {
    made.pipeline.overlap = Overlap::kChangeset;
  } else if (made.pipeline.overlap == Overlap::kChangeset) {
    made.pipeline.overlap = Overlap::kAll;
  }
  if (!KeepsHistory(made.pipeline)) made.pipeline.prior = Prior::kNone;
  made.pipeline.depth = profile.depth();
  const std::vector<ProfiledArray>& arrays = profile.arrays();
  if (arrays.empty()) return made;
  if (!profile.by_type()) {
    made.pipeline.cache_bytes =
        PoolBytes(job, made.pipeline, arrays.front().kept_bytes, made.memory.cache_bytes);
    made.pipeline.read_cost = arrays.front().read_cost;
    return made;
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto parts,
                           profile.Divide(made.memory.superbatch, made.memory.cache_bytes));
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    made.inputs.push_back({.array = profile.division().arrays()[a], .cache = parts[a]});
    made.pipeline.shares.push_back(
        {.cache_bytes = PoolBytes(job, made.pipeline, arrays[a].kept_bytes, parts[a]),
         .held_rows = arrays[a].held_rows,
         .read_cost = arrays[a].read_cost});
    made.pipeline.cache_bytes += made.pipeline.shares.back().cache_bytes;
  }
  return made;
}

Result<FeedPlan> PlanFeed(const FeedJob& job, const EpochPlan& plan, const JobControl& control) {
  SeedStream seeds{.next = [rest = plan]() mutable { return rest.Next(); },
                   .minibatches = plan.minibatches()};
  if (job.pipeline.sampler.valid_sampler && plan.valid_batches() > 0)
    seeds.first_valid = [plan] { return std::optional(FirstValid(plan)); };
  return PlanFeed(job, seeds, control);
}

}  // namespace internal
}  // namespace rhizome
