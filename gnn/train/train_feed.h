#pragma once

#include <cstdint>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/feed_pipeline.h"
#include "cache/feed/feed_profile.h"
#include "gnn/infer/layer_sharing.h"
#include "gnn/train/device_feed.h"
#include "gnn/train/train.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Name of the folder for superbatches in a job's scratch folder.
inline constexpr const char* kSuperbatchFolder = "superbatches";

/// Creates that folder, empty.
Result<Path> MakeSuperbatchFolder(FileSystem& fs, const Path& scratch);

/// Returns the options for feeding a training run, except those that the memory plan determines.
FeedPipelineOptions TrainingPipeline(const OneTraining& one);

/// Divides the memory of a training run, estimated from its first minibatches, and adds the plan to
/// the report. `pipeline`: result of TrainingPipeline, possibly extended by the caller.
/// `superbatch`: number of minibatches; 0: chosen. `device`: how rows are uploaded to a device;
/// null: the CPU computes. Errors: as PlanFeed.
Result<FeedPlan> PlanTrainingFeed(const OneTraining& one, const EpochPlan& plan,
                                  FeedPipelineOptions pipeline, std::uint32_t superbatch,
                                  const DeviceFeedOptions* device = nullptr);

/// As above, for minibatches of an objective, which the CPU computes.
Result<FeedPlan> PlanTrainingFeed(const OneTraining& one, const SeedStream& seeds,
                                  const Objective& objective);

/// Copies to the report how rows, and lists that are on disk, were read.
void TakeReads(const FeedPlan& feed, const FeedPipeline& pipeline, TrainReport& report);

/// Measures the kept weights, in a temporary subfolder of the job's folder. `sharing`: as for
/// MeasureModel. Errors: as MeasureModel.
Status EvaluateBestWeights(const OneTraining& one, std::uint64_t cache_bytes,
                           const JobControl& control, LayerSharing* sharing = nullptr);

}  // namespace internal
}  // namespace rhizome
