#pragma once

#include <string>

#include "rhizome/ingest.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Returns the answer of `ingest --dry-run`: files with their columns, ids, notes, and the command
/// that says all of it.
Json InputPlanJson(const InputPlan& plan, const std::string& store);

/// Describes such an answer to people.
std::string DescribeInputPlan(const Json& fields);

}  // namespace rhizome
