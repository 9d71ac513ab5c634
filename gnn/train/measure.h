#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/score_table.h"
#include "rhizome/gnn/layer_sharing.h"
#include "rhizome/gnn/train_job.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// Returns the metrics of each set that has vertices with scores.
TaskMetrics MetricsOfAllSets(const ScoreTable& scores);

/// Measures the weights of job.model on all sets with all neighbours, layer by layer in `scratch`,
/// with `cache_bytes` for chunks. `sharing`: others that compute a part of each layer and come to
/// the same metrics; null: none. Errors: those of RunLayerwise and LayerSharing.
Result<TaskMetrics> MeasureModel(const TrainJob& job, const TrainOptions& options,
                                 std::uint64_t cache_bytes, const Path& scratch,
                                 const JobControl& control, LayerSharing* sharing = nullptr);

/// Returns the accuracy on the test set of always answering the training set's most frequent class;
/// nothing if there is no test set, or no classes.
std::optional<double> MajorityAccuracy(const Labels& labels);

/// Mean and deviation over all seeds of each metric of the test set; where there is none, of the
/// validation set.
std::vector<MetricSpread> SpreadOf(std::span<const SeedReport> seeds);

}  // namespace rhizome::inline internal
