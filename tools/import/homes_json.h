#pragma once

#include <optional>
#include <string>

#include "index/homes/home_array.h"
#include "rhizome/ingest.h"
#include "tools/cli/json.h"

namespace rhizome {

/// Returns the description of the homes of a store (the part that each vertex's rows are assigned
/// to) as JSON, or null if the store has none.
Json HomesJson(const std::optional<StoredHomes>& homes);

/// Formats the result of HomesJson: "8 by edgecut".
std::string HomesText(const Json& homes);

/// Formats the quality of the assignment: "7.81 % of edges between homes; ...".
std::string HomesQuality(const Json& homes);

/// Sets the homes requested by --homes: empty (none), "edgecut", "owner", or the name of a file.
void SetHomes(const std::string& given, IngestOptions& options);

}  // namespace rhizome
