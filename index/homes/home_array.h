#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/ingest.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Returns "none", "edgecut", "owner" or "file".
std::string_view HomeRuleName(HomeRule rule);

/// The array of a store that holds the home of each vertex: int32 [vertices, 1]. A vertex that
/// updates added has the home -1, "none", until one is put.
inline constexpr std::string_view kHomeArray = "home";

/// Returns the attributes that record `homes` in an array.
std::vector<std::pair<std::string, std::string>> HomeAttributes(const StoredHomes& homes);

/// Parses the attributes of an array; returns nullopt if it is not an array of homes.
/// Errors: kCorruption, the array claims to hold homes, but a fact is malformed, or its dtype or
/// shape is wrong.
Result<std::optional<StoredHomes>> HomesOfArray(const ArrayEntry& entry);

/// Returns the facts about the homes of a store; nullopt if it has none.
/// Errors: as HomesOfArray.
Result<std::optional<StoredHomes>> FindHomes(const Manifest& manifest);

/// Returns a message that names the homes with more rows, or more training vertices, than
/// HomeOptions allows by default; nullopt if there are none. `vertices` is the number of vertices
/// when the store was created.
std::optional<std::string> HomeWarning(const StoredHomes& homes, std::uint64_t vertices);

}  // namespace rhizome
