#include "rhizome/gnn/training_profile.h"

#include <algorithm>

#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/cache/loader.h"
#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/cache/policies.h"
#include "rhizome/cache/process_memory.h"
#include "rhizome/cache/replay.h"
#include "rhizome/storage/stopwatch.h"

namespace rhizome {
namespace {

/// Memory that libtorch and the allocator take when they first work.
constexpr std::uint64_t kSlackBytes = std::uint64_t{48} << 20;

/// Bytes for each access: of the trace and schedule of the superbatch that is being scheduled, plus
/// the schedule of the one in use.
constexpr std::uint64_t kScheduleBytesPerAccess = 48 + 4;
constexpr std::uint64_t kCostScheduleBytesPerAccess = 64 + 4;

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
std::uint64_t HeldRowsOf(const TrainOptions& options, std::uint64_t rows) {
  const bool pool = options.cache != PolicyKind::kNone && options.cache_bytes.value_or(1) > 0;
  return pool ? rows + rows / 4 : MinibatchesAlive() * rows;
}

/// Returns the bytes that a step holds besides its features: for every layer the rows that it
/// multiplies (a vertex's own and its neighbours' sum), the products, and the gradients of both.
std::uint64_t ActivationBytes(const Minibatch& minibatch, const ModelShape& shape) {
  const std::vector<std::uint64_t>& offsets = minibatch.hop_offsets;
  const std::uint64_t layers = shape.spec.layers, last = offsets.size() - 2;
  const auto hidden = static_cast<std::uint64_t>(shape.spec.hidden);
  std::uint64_t numbers = 0;
  for (std::uint64_t k = 0; k < layers; ++k) {
    const std::uint64_t hop = std::min(layers - 1 - k, last);
    const std::uint64_t targets = offsets[hop + 1];
    const std::uint64_t sources = offsets[std::min(hop + 1, last) + 1];
    const std::uint64_t in = k == 0 ? static_cast<std::uint64_t>(shape.inputs) : hidden;
    numbers += targets * (2 * in + 3 * hidden);
    if (k > 0) numbers += sources * in + targets * 2 * in;
    // the layer may multiply before it aggregates
    if (in > hidden) numbers += 2 * sources * hidden;
  }
  return numbers * sizeof(float);
}

/// Returns the bytes of a row in the pool.
std::uint64_t KeptRowBytes(const TrainingProfile::Job& job) {
  return job.options.model.normalize_features ? job.features.dim * sizeof(float)
                                              : job.features.row_bytes();
}

MemoryNeeds NeedsOf(const TrainingProfile::Job& job, const Minibatch& minibatch) {
  const std::uint64_t rows = WithMargin(minibatch.rows.size());
  const std::uint64_t edges = WithMargin(minibatch.csr.neighbors.size());
  const bool cost = job.options.cache == PolicyKind::kCost;
  MemoryNeeds needs;
  needs.held_rows = HeldRowsOf(job.options, rows);
  needs.working_bytes = kSlackBytes + RowReaderOptions().staging_bytes + 4 * job.features.rows +
                        PolicyBytesPerKey(job.options.cache) * job.features.rows +
                        needs.held_rows * KeptRowBytes(job) +
                        MinibatchesAlive() * (rows * kRowBytes + edges * 5) + rows * 40 +
                        edges * 24 +  // of the minibatch that is being sampled
                        WithMargin(ActivationBytes(minibatch, job.shape));
  needs.schedule_bytes = rows * (cost ? kCostScheduleBytesPerAccess : kScheduleBytesPerAccess);
  needs.cacheable_bytes = job.features.rows * job.features.row_bytes();
  if (job.neighbors != nullptr) {
    const NeighborCache::Needs cache = NeighborCache::NeedsOf(job.graph, Direction::kIn);
    needs.neighbor_full_bytes = cache.full_bytes;
    needs.neighbor_table_bytes = cache.table_bytes;
    needs.neighbor_build_bytes = cache.build_bytes;
    needs.working_bytes += ListsOnDisk::WorkingBytes(edges);
  }
  return needs;
}

/// Returns whether the length of a superbatch affects what is read.
bool MayTry(const TrainOptions& options) {
  return options.superbatch == 0 && KnowsTheFuture(options.cache) && options.io != IoMaker::kMapped;
}

}  // namespace

MinibatchSamplerOptions SamplerOptionsOf(const TrainOptions& options) {
  return {.fanouts = options.fanouts,
          .no_edges = options.model.no_edges,
          .degrees = options.model.kind == ModelKind::kGcn,
          .seed = options.seed,
          .threads = std::max<std::uint32_t>(options.threads, 1)};
}

std::uint64_t MinibatchesAlive() { return kMinibatchesAhead + 1; }

Result<TrainingProfile> TrainingProfile::Measure(const Job& job, EpochPlan plan,
                                                 const JobControl& control) {
  const std::uint64_t minibatches =
      (plan.train_batches() + plan.valid_batches()) * job.options.epochs;
  RHIZOME_ASSIGN_OR_RETURN(
      const MinibatchSampler sampler,
      MinibatchSampler::Create(job.graph, SamplerOptionsOf(job.options), job.neighbors));
  RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*plan.Next()));
  TrainingProfile profile;
  profile.needs_ = NeedsOf(job, minibatch);
  profile.needs_.minibatches = minibatches;
  const std::uint64_t now = ResidentBytes();
  profile.needs_.held_bytes = now > job.base_bytes ? now - job.base_bytes : 0;
  profile.trace_.AddStep(minibatch.rows);
  if (MayTry(job.options)) RHIZOME_RETURN_IF_ERROR(profile.SampleMore(sampler, plan, job, control));
  return profile;
}

Status TrainingProfile::SampleMore(const MinibatchSampler& sampler, EpochPlan& plan, const Job& job,
                                   const JobControl& control) {
  const Stopwatch watch;
  const std::uint64_t limit = job.options.memory_bytes;
  const std::uint64_t room =
      limit == 0 ? kProfileBytes : (limit - std::min(limit, needs_.held_bytes)) / 2;
  // The bytes of a minibatch: its part of the trace, and half of its schedules.
  const std::uint64_t bytes = trace_.keys.size() * sizeof(CacheKey) + needs_.schedule_bytes / 2;
  const std::uint64_t most = std::min({kProfiledMinibatches, needs_.minibatches / kProfiledShare,
                                       room / std::max<std::uint64_t>(bytes, 1)});
  while (trace_.steps() < most && watch.seconds() < kProfileSeconds) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const std::optional<SeedBatch> seeds = plan.Next();
    if (!seeds) break;
    RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*seeds));
    trace_.AddStep(minibatch.rows);
  }
  if (trace_.steps() < 2) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const auto array, job.graph.store().OpenArray(job.options.features));
  IoQueueOptions io{.maker = job.options.io};
  RHIZOME_ASSIGN_OR_RETURN(io.depth, MeasureDepth(*array, io));
  depth_ = io.depth;
  RHIZOME_ASSIGN_OR_RETURN(read_cost_, MeasureReadCost(*array, io));
  policy_ = {.kind = job.options.cache,
             .frame_count = 0,
             .key_count = job.graph.vertex_count(),
             .unit_bytes = job.features.row_bytes(),
             .cost = *read_cost_};
  frame_bytes_ = KeptRowBytes(job);
  return Status::Ok();
}

SuperbatchTrial TrainingProfile::trial() {
  return {.most = static_cast<std::uint32_t>(trace_.steps() / 2),
          .seconds = [this](std::uint32_t superbatch, std::uint64_t cache_bytes) {
            const auto [at, is_new] = tried_.try_emplace({superbatch, cache_bytes}, 0);
            if (is_new) at->second = ReadSeconds(superbatch, cache_bytes);
            return at->second;
          }};
}

double TrainingProfile::ReadSeconds(std::uint32_t superbatch, std::uint64_t cache_bytes) {
  PolicyOptions policy = policy_;
  policy.frame_count =
      static_cast<std::uint32_t>(std::min(cache_bytes / frame_bytes_, policy.key_count));
  return ReplaySuperbatches(trace_, superbatch, policy);
}

TrainProfileReport TrainingProfile::report() const {
  TrainProfileReport report{.minibatches = trace_.steps(), .depth = depth_, .tried = {}};
  for (const auto& [what, seconds] : tried_)
    report.tried.push_back(
        {.superbatch = what.first, .cache_bytes = what.second, .read_seconds = seconds});
  return report;
}

}  // namespace rhizome
