#pragma once

#include <optional>
#include <string>

#include "cache/ranks/rank_plan.h"
#include "rhizome/status.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Parses the bandwidth of a link in bits per second and its one-way latency: "10G" or "10G,50us".
/// Returns nullopt for any other text.
std::optional<LinkModel> ParseLink(const std::string& text);

/// As ParseLink, for the value of --link. Errors: kInvalidArgument.
Result<LinkModel> LinkOf(const std::string& flag);

/// Returns the counts of a rank, as printed by `plan train --ranks` and by a training over ranks.
Json RankCountsJson(std::size_t rank, const RankCounts& counts);

/// Adds the JSON fields of `plan train --ranks` to `fields`.
void AddRankPlan(const RankPlanReport& report, const RankPlanOptions& options, Json& fields);

/// Formats the fields of AddRankPlan for people.
std::string DescribeRankPlan(const Json& fields);

}  // namespace rhizome
