#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Versions of an array: version 3 of `emb` is the array that is stored as `emb.v3`; users write
/// `emb@3`. An alias such as `emb@live` refers to one version, and a commit can move it to another.
/// `emb@latest` is the newest version. Plain `emb` is the version of `emb@live` if that alias
/// exists, otherwise the newest. A stored array is never changed: rows are appended by creating the
/// next version.

inline constexpr std::string_view kLiveAlias = "live";
inline constexpr std::string_view kLatest = "latest";

// The limits of one series (storage/FORMAT.md, "Limits"): its aliases, and the versions that an
// alias remembers.
inline constexpr std::size_t kMaxAliases = 64;
inline constexpr std::size_t kMaxAliasHistory = 16;

/// An attribute (ArrayEntry::attributes) of an array that was added, or appended to, with fewer
/// rows than there are vertices. Its value is a decimal number: rows were provided for vertices
/// with smaller ids; later rows have the values of FillMissingRows (array_facts.h). Without the
/// attribute, rows were provided for all vertices.
inline constexpr std::string_view kRowsGivenAttribute = "rows_given";

/// Returns the value of that attribute, at most entry.rows; entry.rows if it is absent or not a
/// number.
std::uint64_t RowsGiven(const ArrayEntry& entry);

/// Converts a stored name to the form that users write, for messages and logs: emb@2 for "emb.v2",
/// emb@2.stale for "emb.v2.stale". Other names are returned unchanged.
std::string ShownName(std::string_view stored);

/// Returns the stored name of a version, such as "emb.v3".
std::string VersionName(std::string_view name, std::uint64_t version);

/// Splits a stored name such as "emb.v3" into name and version; nullopt for any other name.
std::optional<std::pair<std::string_view, std::uint64_t>> SplitVersion(std::string_view stored);

/// A parsed reference such as "emb", "emb@3" or "emb@live".
struct ArrayReference {
  std::string name;
  std::string selector;  ///< the text after the @; empty if there is no @
};

/// Parses a reference. Name and alias must be names (CheckName); a version is a number from 1
/// without leading zeros. Errors: kInvalidArgument, another form.
Result<ArrayReference> ParseArrayReference(std::string_view text);

/// Checks that `alias` is a valid alias: a name, not a number and not "latest".
/// Errors: kInvalidArgument.
Status CheckAlias(std::string_view alias);

/// Parses a version number; nullopt if `selector` is not a version number.
std::optional<std::uint64_t> ParseVersion(std::string_view selector);

/// Finds the stored array of exactly this name; nullptr if there is none. `arrays` must be sorted
/// by name.
const ArrayEntry* FindStoredArray(std::span<const ArrayEntry> arrays, std::string_view name);

/// Returns the stored versions of `name`, ascending.
std::vector<std::uint64_t> VersionsOf(const Manifest& manifest, std::string_view name);

/// Finds the array to which a reference refers, except by its exact stored name; nullptr if there
/// is none. A reference followed by ".crc32c" refers to the sidecar.
const ArrayEntry* FindVersion(const Manifest& manifest, std::string_view reference);

/// Checks a series of a manifest that contains these arrays. Errors: kInvalidArgument.
Status CheckSeries(const ArraySeries& series, std::span<const ArrayEntry> arrays);

/// Creates an array id (ArrayEntry::array_id) for a new array. The delta identifies arrays by id,
/// and may still contain rows of a dropped array, so an id is never reused. It is a hash of the
/// store's state and of `salt`, which distinguishes concurrent jobs, and is at least 2^62, because
/// ingestions count from 1.
std::uint64_t NewArrayId(const StoreId& store, const Manifest& manifest, std::string_view salt);

/// Returns the series of a next generation that contains `arrays` (sorted by name). Version numbers
/// are never reused. An alias keeps its version; an alias whose version was not carried over is
/// dropped.
std::vector<ArraySeries> CarrySeries(std::span<const ArraySeries> series,
                                     std::span<const ArrayEntry> arrays);

}  // namespace rhizome
