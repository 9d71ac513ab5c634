#pragma once

#include <string>

#include "rhizome/train_options.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Adds the plan of an epoch of full-graph training to `json`: passes, arrays, planned_bytes and
/// the other figures of the plan.
void AddFullGraphPlan(const FullGraphReport& plan, Json& json);

/// As above, for a completed training. Also adds measured_bytes, the bytes of the last epoch, and
/// times and bytes to each epoch.
void AddFullGraphReport(const TrainReport& report, Json& json);

/// Format the fields that these functions added, for people.
std::string DescribeFullGraphPlan(const Json& f);
std::string DescribeFullGraphEpochs(const Json& f);

}  // namespace rhizome
