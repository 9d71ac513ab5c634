#pragma once

#include <string>

#include "rhizome/link_training.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Returns the report of a training of a table, and formats it for people. `f` also has the field
/// `store`, and `test` if there were test edges (EvaluationJson).
Json TableReportJson(const TableModelReport& report);
std::string DescribeTableTraining(const Json& f);

/// Returns the plan of a training of a table, and formats it for people.
Json TablePlanJson(const TablePlan& plan);
std::string DescribeTablePlan(const Json& f);

}  // namespace rhizome
