#pragma once

#include <string>
#include <vector>

#include "cli.h"
#include "rhizome/gnn/train_options.h"

namespace rhizome {

/// Adds the flags of `train` about the task and how it is learnt: --task, --class-weights,
/// --optimizer, --schedule, --patience, --seeds, --init and those beside them. `options` must
/// outlive `verb`.
void AddLearningFlags(CLI::App& verb, TrainOptions& options);

/// {"train": {...}, "valid": {...}, "test": {...}}: each null or with "vertices", the metrics by
/// name (null where undefined, and then with the reason in "undefined"), "classes" and "confusion".
Json TaskMetricsJson(const TaskMetrics& metrics);

/// The metrics by name, null where undefined; null if there are none.
Json MetricValuesJson(const std::vector<MetricValue>& values);

/// Adds what `train --json` says of the task, of all seeds and of the metrics.
void AddLearningReport(const TrainReport& report, Json& json);

/// The metrics of a report, as the table that `train` prints; nothing where none was measured.
std::string DescribeMetrics(const Json& fields);

/// One line for each seed and one for mean and deviation; nothing for one seed.
std::string DescribeSeeds(const Json& fields);

/// A metric's value as users read it: shares in percent, errors as numbers, "none" for null.
std::string MetricText(const std::string& name, const Json& value);

}  // namespace rhizome
