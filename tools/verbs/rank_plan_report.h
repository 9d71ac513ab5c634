#pragma once

#include <optional>
#include <string>

#include "cli.h"
#include "rhizome/cache/rank_plan.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// "10G" or "10G,50us": bits a second, and how long a byte is on its way; nullopt if it is neither.
std::optional<LinkModel> ParseLink(const std::string& text);

/// The same of the flag --link. Errors: kInvalidArgument.
Result<LinkModel> LinkOf(const std::string& flag);

/// The counts of a rank, as `plan train --ranks` and a training over ranks print them.
Json RankCountsJson(std::size_t rank, const RankCounts& counts);

/// Adds what `plan train --ranks` prints as JSON to `fields`.
void AddRankPlan(const RankPlanReport& report, const RankPlanOptions& options, Json& fields);

/// Describes that to a person.
std::string DescribeRankPlan(const Json& fields);

}  // namespace rhizome
