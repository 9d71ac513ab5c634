#pragma once

#include <string>
#include <vector>

#include "rhizome/train_options.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Returns {"train": {...}, "valid": {...}, "test": {...}}. Each set is null, or has "vertices",
/// the metrics by name (null if undefined, with the reason in "undefined"), "classes" and
/// "confusion".
Json TaskMetricsJson(const TaskMetrics& metrics);

/// Returns the metrics by name, null for undefined ones; null if there are no metrics.
Json MetricValuesJson(const std::vector<MetricValue>& values);

/// Adds the fields of `train --json` about the task, the seeds and the metrics.
void AddLearningReport(const TrainReport& report, Json& json);

/// Formats the metrics of a report as the table that `train` prints; empty if no metric was
/// measured.
std::string DescribeMetrics(const Json& fields);

/// Formats one line per seed and one for mean and deviation; empty if there is one seed.
std::string DescribeSeeds(const Json& fields);

/// Formats the value of a metric: shares in percent, errors as numbers, "none" for null.
std::string MetricText(const std::string& name, const Json& value);

}  // namespace rhizome
