#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/home_partitioner.h"
#include "rhizome/manifest.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// The rule that assigned homes to the rows of a store.
enum class HomeRule : std::uint8_t {
  kNone,     ///< the store has no homes
  kEdgeCut,  ///< DivideRows
  kOwner,    ///< the owners of the vertices (the partition where a look-up begins)
  kFile,     ///< a file that another program wrote
};

/// Returns "none", "edgecut", "owner" or "file".
std::string_view HomeRuleName(HomeRule rule);

/// The array of a store that holds the home of each vertex: int32 [vertices, 1]. A vertex that
/// updates added has the home -1, "none", until one is put.
inline constexpr std::string_view kHomeArray = "home";
inline constexpr std::int32_t kNoHome = -1;

/// Facts about the homes of a store, as of its creation. They are attributes of the array. When a
/// repair publishes a new version of the array with the rows that it could save, it keeps them. An
/// array named "home" without these attributes is not an array of homes.
struct StoredHomes {
  std::uint32_t homes = 1;  ///< number of homes, in [1, kMaxPartitions]
  HomeRule rule = HomeRule::kNone;
  std::uint64_t seeds = 0;  ///< number of training vertices of all homes
  HomeMetrics metrics;

  /// Returns whether a row of the array may have this value.
  bool Allows(std::int32_t home) const {
    return home == kNoHome || (home >= 0 && static_cast<std::uint32_t>(home) < homes);
  }
  friend bool operator==(const StoredHomes&, const StoredHomes&) = default;
};

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
