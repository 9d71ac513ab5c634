#pragma once

#include <cstdint>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/cache/feed_pipeline.h"
#include "rhizome/cache/feed_profile.h"
#include "rhizome/gnn/device_feed.h"
#include "rhizome/gnn/layer_sharing.h"
#include "rhizome/gnn/train.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The folder for superbatches in a job's scratch folder.
inline constexpr const char* kSuperbatchFolder = "superbatches";

/// Makes that folder, empty.
Result<Path> MakeSuperbatchFolder(FileSystem& fs, const Path& scratch);

/// Returns how a training is fed, but for what the division of memory decides.
FeedPipelineOptions TrainingPipeline(const OneTraining& one);

/// Divides the memory of a training by what its first minibatches lead to expect, and adds the plan
/// to the report. `pipeline`: of TrainingPipeline, which more may have been added to.
/// `superbatch`: minibatches; 0: chosen. `device`: how rows are brought to a device, if one
/// computes; else null. Errors: those of PlanFeed.
Result<FeedPlan> PlanTrainingFeed(const OneTraining& one, const EpochPlan& plan,
                                  FeedPipelineOptions pipeline, std::uint32_t superbatch,
                                  const DeviceFeedOptions* device = nullptr);

/// Takes how rows, and lists that are on disk, were read.
void TakeReads(const FeedPlan& feed, const FeedPipeline& pipeline, TrainReport& report);

/// Measures the kept weights, in a folder of their own in the job's, which is removed. `sharing`:
/// as MeasureModel takes it. Errors: those of MeasureModel.
Status MeasureKept(const OneTraining& one, std::uint64_t cache_bytes, const JobControl& control,
                   LayerSharing* sharing = nullptr);

}  // namespace rhizome::inline internal
