#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/index/home_partitioner.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// The rule by which the rows of a store got their homes.
enum class HomeRule : std::uint8_t {
  kNone,     ///< the store keeps no homes
  kEdgeCut,  ///< DivideRows
  kOwner,    ///< the owners of the vertices (the partition that a look-up begins at)
  kFile,     ///< another program, which wrote a file
};

/// Returns "none", "edgecut", "owner" or "file".
std::string_view HomeRuleName(HomeRule rule);

/// The array of a store that keeps the home of each vertex: int32 [vertices, 1]. A vertex that
/// updates added has the home -1, "none", until one is put.
inline constexpr std::string_view kHomeArray = "home";
inline constexpr std::int32_t kNoHome = -1;

/// Facts about the homes that a store keeps, as they were when the store was made. They are
/// attributes of the array, and of the version of it that a repair makes of what could be saved; an
/// array of that name without them is no array of homes.
struct StoredHomes {
  std::uint32_t homes = 1;  ///< their number, in [1, kMaxPartitions]
  HomeRule rule = HomeRule::kNone;
  std::uint64_t seeds = 0;  ///< training vertices, of which each home has its share
  HomeMetrics metrics;

  /// Whether a row of the array may be this.
  bool Allows(std::int32_t home) const {
    return home == kNoHome || (home >= 0 && static_cast<std::uint32_t>(home) < homes);
  }
  friend bool operator==(const StoredHomes&, const StoredHomes&) = default;
};

/// Returns the attributes that say this of an array.
std::vector<std::pair<std::string, std::string>> HomeAttributes(const StoredHomes& homes);

/// Returns what an array says of itself; nothing if it is no array of homes. Errors: kCorruption,
/// it says that it is one, but a fact is malformed, or type or shape are others.
Result<std::optional<StoredHomes>> HomesOfArray(const ArrayEntry& entry);

/// Returns what a store says of its homes; nothing if it keeps none. Errors: as above.
Result<std::optional<StoredHomes>> FindHomes(const Manifest& manifest);

/// Returns a text that says which homes have more rows, or training vertices, than HomeOptions
/// allows by default; nothing if none has. `vertices` is their number when the store was made.
std::optional<std::string> HomeWarning(const StoredHomes& homes, std::uint64_t vertices);

}  // namespace rhizome
