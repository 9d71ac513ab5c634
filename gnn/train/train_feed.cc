#include "gnn/train/train_feed.h"

#include <algorithm>
#include <utility>

#include "cache/feed/resolve_sampling.h"
#include "cache/feed/score_table.h"
#include "gnn/train/measure.h"
#include "gnn/train/training_memory.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns whether rows and lists use memory in turn (Overlap::kChangeset), or nullopt if the plan
/// may choose. Memory in which a device reads rows in place is not lent to lists.
std::optional<bool> InTurn(const FeedOptions& feed, const DeviceFeedOptions* on_device) {
  if (!feed.overlap && on_device != nullptr && on_device->reaches) return false;
  if (!feed.overlap) return std::nullopt;
  return *feed.overlap == Overlap::kChangeset;
}

}  // namespace

Result<Path> MakeSuperbatchFolder(FileSystem& fs, const Path& scratch) {
  const Path folder = scratch / kSuperbatchFolder;
  RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, folder));
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, folder));
  return folder;
}

FeedPipelineOptions TrainingPipeline(const OneTraining& one) {
  const TrainOptions& options = one.options;
  FeedPipelineOptions feed;
  feed.sampler = one.job.sampling;
  SetSamplers(options.learning.seed, options.resources.threads, feed.sampler);
  if (one.job.inputs.empty()) feed.features = options.data.features;
  feed.inputs = one.job.inputs;
  feed.normalize = options.model.normalize_features;
  feed.policy = options.minibatch()->feed.cache;
  feed.prior = options.minibatch()->feed.prior;
  feed.io = options.resources.io;
  feed.overlap = options.minibatch()->feed.overlap.value_or(Overlap::kAll);
  return feed;
}

namespace {

/// Describes the job of a training to the planner of the memory.
FeedJob TrainingFeedJob(const OneTraining& one, FeedPipelineOptions pipeline,
                        std::uint32_t superbatch, const DeviceFeedOptions* on_device) {
  const auto& [job, options, scratch, run, held, report, control, device, learned] = one;
  const auto held_bytes = [&job = job, &options = options, &held = held] {
    const std::uint64_t measured =
        job.valid.size() + (options.learning.train_metrics ? job.train.size() : 0);
    return held() + ScoreTable::BytesFor(job.labels, measured);
  };
  const auto compute_bytes = [&one, on_device](const Minibatch& minibatch) {
    const Model& model = *one.job.model;
    if (on_device == nullptr) return StepBytes(minibatch, model);
    std::uint64_t& planned = one.report.device->planned_host_bytes;
    planned = std::max(planned, DeviceHostBytes(minibatch, model, *on_device));
    return StagingBytes(minibatch, model, *on_device);
  };
  const std::uint64_t schedule_bytes = on_device != nullptr && KnowsTheFuture(on_device->policy)
                                           ? DeviceFrames::kScheduleBytesPerAccess
                                           : 0;
  const FeedOptions& settings = options.minibatch()->feed;
  return {.graph = *job.graph,
          .pipeline = std::move(pipeline),
          .fixed = {.cache_bytes = settings.cache_bytes,
                    .superbatch = superbatch,
                    .neighbor_cache_bytes = settings.neighbor_cache_bytes,
                    .in_turn = InTurn(settings, on_device)},
          .memory_bytes = options.resources.memory_bytes,
          .held_bytes = held_bytes,
          .compute_bytes = compute_bytes,
          .other_schedule_bytes = schedule_bytes};
}

void TakePlan(const FeedPlan& feed, TrainReport& report) {
  report.profile = feed.profile;
  report.superbatch = feed.memory.superbatch;
  report.overlap = feed.pipeline.overlap;
  report.prior = feed.pipeline.prior;
  report.memory = {.held = feed.needs.held_bytes,
                   .working = feed.needs.working_bytes,
                   .schedules = feed.memory.superbatch * feed.needs.schedule_bytes,
                   .cache = feed.memory.cache_bytes,
                   .neighbor_cache = feed.memory.neighbor_cache_bytes};
}

}  // namespace

Result<FeedPlan> PlanTrainingFeed(const OneTraining& one, const EpochPlan& plan,
                                  FeedPipelineOptions pipeline, std::uint32_t superbatch,
                                  const DeviceFeedOptions* on_device) {
  const FeedJob job = TrainingFeedJob(one, std::move(pipeline), superbatch, on_device);
  RHIZOME_ASSIGN_OR_RETURN(FeedPlan feed, PlanFeed(job, plan, one.control));
  TakePlan(feed, one.report);
  return feed;
}

Result<FeedPlan> PlanTrainingFeed(const OneTraining& one, const SeedStream& seeds,
                                  const Objective& objective) {
  const std::uint32_t superbatch = one.options.minibatch()->feed.superbatch;
  FeedJob job = TrainingFeedJob(one, TrainingPipeline(one), superbatch, nullptr);
  job.compute_bytes = [model = job.compute_bytes, &objective](const Minibatch& minibatch) {
    return model(minibatch) + objective.StepBytes(minibatch);
  };
  RHIZOME_ASSIGN_OR_RETURN(FeedPlan feed, PlanFeed(job, seeds, one.control));
  TakePlan(feed, one.report);
  return feed;
}

void TakeReads(const FeedPlan& feed, const FeedPipeline& pipeline, TrainReport& report) {
  const RowReaderStats reads = pipeline.reader_stats();
  report.maker = reads.maker;
  report.direct = reads.direct;
  report.mean_depth = reads.mean_depth;
  if (feed.pipeline.lists != nullptr) {
    report.list_reads = feed.pipeline.lists->report();
    report.list_reads->swept = feed.pipeline.swept;
  }
}

Status EvaluateBestWeights(const OneTraining& one, std::uint64_t cache_bytes,
                           const JobControl& control, LayerSharing* sharing) {
  const Path folder = one.scratch / "evaluation";
  RHIZOME_ASSIGN_OR_RETURN(one.report.metrics, MeasureModel(one.job, one.options, cache_bytes,
                                                            folder, control, sharing));
  return RemoveTree(one.job.store->fs(), folder);
}

}  // namespace internal
}  // namespace rhizome
