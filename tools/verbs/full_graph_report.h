#pragma once

#include <string>

#include "cli.h"
#include "rhizome/gnn/train_options.h"

namespace rhizome {

/// Adds to `json` how an epoch on the full graph goes: plan, arrays, planned_bytes and what else
/// the plan has.
void AddFullGraphPlan(const FullGraphReport& plan, Json& json);

/// Adds the same of a training, with measured_bytes, those of the last epoch; and to its epochs
/// times and bytes.
void AddFullGraphReport(const TrainReport& report, Json& json);

/// Describe, in words, what these functions added.
std::string DescribeFullGraphPlan(const Json& f);
std::string DescribeFullGraphEpochs(const Json& f);

}  // namespace rhizome
