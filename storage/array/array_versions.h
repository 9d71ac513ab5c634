#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"

namespace RHIZOME_API rhizome {

/// Versions of an array: version 3 of `emb` is the array that is stored as `emb.v3`; users write
/// `emb@3`. An alias such as `emb@live` stands for one version, and a commit moves it. `emb@latest`
/// is the newest version. Plain `emb` is the version of `emb@live` if there is that alias, else the
/// newest. A stored array is never changed: rows are appended by making the next version.

inline constexpr std::string_view kLiveAlias = "live";
inline constexpr std::string_view kLatest = "latest";

// The limits of one series in storage/FORMAT.md, "Limits": its aliases, and the versions that an
// alias remembers.
inline constexpr std::size_t kMaxAliases = 64;
inline constexpr std::size_t kMaxAliasHistory = 16;

/// An attribute (ArrayEntry::attributes) of an array that was added, or appended to, with fewer
/// rows than there are vertices. Its value is decimal: vertices with ids below it were given a row;
/// later rows are those of FillMissingRows (array_rules.h). Without it all vertices were given a
/// row.
inline constexpr std::string_view kRowsGivenAttribute = "rows_given";

/// Returns the value of that attribute, at most entry.rows; entry.rows if it is absent or no
/// number.
std::uint64_t RowsGiven(const ArrayEntry& entry);

/// Returns the stored name as users write it, for messages and logs: emb@2 for "emb.v2",
/// emb@2.stale for "emb.v2.stale". Other names stay as they are.
std::string ShownName(std::string_view stored);

/// Returns the stored name of a version, such as "emb.v3".
std::string VersionName(std::string_view name, std::uint64_t version);

/// Splits a stored name such as "emb.v3" into name and version; nothing for any other name.
std::optional<std::pair<std::string_view, std::uint64_t>> SplitVersion(std::string_view stored);

/// A parsed reference such as "emb", "emb@3" or "emb@live".
struct ArrayReference {
  std::string name;
  std::string selector;  ///< after the @; empty without one
};

/// Parses a reference. Name and alias are names (CheckName), a version is a number from 1 without
/// leading zeros. Errors: kInvalidArgument, another form.
Result<ArrayReference> ParseArrayReference(std::string_view text);

/// Checks that `alias` is fit for an alias: a name, not a number and not "latest". Errors:
/// kInvalidArgument.
Status CheckAlias(std::string_view alias);

/// Parses a version number; nothing if `selector` is none.
std::optional<std::uint64_t> ParseVersion(std::string_view selector);

/// Finds the stored array of exactly this name; nullptr if there is none. `arrays` is sorted by
/// name.
const ArrayEntry* FindStoredArray(std::span<const ArrayEntry> arrays, std::string_view name);

/// Returns the versions of `name` that are stored, ascending.
std::vector<std::uint64_t> VersionsOf(const Manifest& manifest, std::string_view name);

/// Finds the array that a reference stands for, other than by its exact stored name; nullptr if
/// there is none. A reference followed by ".crc32c" stands for the sidecar.
const ArrayEntry* FindVersion(const Manifest& manifest, std::string_view reference);

/// Checks a series of a manifest with these arrays. Errors: kInvalidArgument.
Status CheckSeries(const ArraySeries& series, std::span<const ArrayEntry> arrays);

/// Makes an array id (ArrayEntry::array_id) for a new array. The delta knows arrays by id, and may
/// still hold rows that were put into a dropped array, so an id is never given again. It is a hash
/// of the store's state and of `salt`, which tells jobs apart that run at once, and at least 2^62,
/// as ingestions count from 1.
std::uint64_t NewArrayId(const StoreId& store, const Manifest& manifest, std::string_view salt);

/// Returns the series of a next generation that holds `arrays` (sorted by name). Version numbers
/// are never given again. An alias keeps its version; one whose version was not carried over is
/// dropped.
std::vector<ArraySeries> CarrySeries(std::span<const ArraySeries> series,
                                     std::span<const ArrayEntry> arrays);

}  // namespace rhizome
