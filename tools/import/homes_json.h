#pragma once

#include <optional>
#include <string>

#include "json.h"
#include "rhizome/index/home_array.h"
#include "rhizome/index/ingest_options.h"

namespace rhizome {

/// Returns the facts about a store's homes; null if it keeps none.
Json HomesJson(const std::optional<StoredHomes>& homes);

/// Returns a text of these facts: "8 by edgecut".
std::string HomesText(const Json& homes);

/// Returns what divides them: "7.81 % of edges between homes; ...".
std::string HomesQuality(const Json& homes);

/// Sets the homes that --homes asks for: empty, "edgecut", "owner", or else the name of a file.
void SetHomes(const std::string& given, IngestOptions& options);

}  // namespace rhizome
