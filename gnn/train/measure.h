#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/feed/score_table.h"
#include "gnn/infer/layer_sharing.h"
#include "gnn/train/train_job.h"
#include "rhizome/job_control.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Returns the metrics of each set that has vertices with scores.
TaskMetrics MetricsOfAllSets(const ScoreTable& scores);

/// Computes the metrics of job.model's weights on all sets with all neighbours, layer by layer,
/// with temporary files in `scratch` and `cache_bytes` for chunks. `sharing`: other processes that
/// compute a part of each layer and obtain the same metrics; null: none. Errors: as RunLayerwise
/// and LayerSharing.
Result<TaskMetrics> MeasureModel(const TrainJob& job, const TrainOptions& options,
                                 std::uint64_t cache_bytes, const Path& scratch,
                                 const JobControl& control, LayerSharing* sharing = nullptr);

/// Returns the test accuracy of always predicting the training set's most frequent class; nullopt
/// if there is no test set or the task has no classes.
std::optional<double> MajorityAccuracy(const Labels& labels);

/// Returns mean and deviation over all seeds of each metric of the test set, or of the validation
/// set if there is no test set.
std::vector<MetricSpread> SpreadOf(std::span<const SeedReport> seeds);

}  // namespace internal
}  // namespace rhizome
