#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/storage/manifest.h"

namespace rhizome {

/// Versions of an array. Version 3 of `emb` is the array that is stored as `emb.v3`; users write
/// `emb@3`. An alias, `emb@live`, stands for one version and is moved by a commit. `emb@latest` is
/// the newest, and plain `emb` what `emb@live` stands for, where there is one, else the newest.
/// A stored array is never changed: rows are appended by making the next version.

inline constexpr std::string_view kLiveAlias = "live";
inline constexpr std::string_view kLatest = "latest";
inline constexpr std::size_t kMaxAliases = 64;
inline constexpr std::size_t kMaxAliasHistory = 16;

/// How many of the vertices, by vertex id, were given a row of an array that was added or appended
/// to with fewer rows than there are vertices: an attribute (ArrayEntry::attributes), a decimal.
/// From there on rows are as FillMissingRows (array_rules.h) has them. Absent: all were.
inline constexpr std::string_view kRowsGivenAttribute = "rows_given";

/// The value of that attribute; `entry.rows` where it is absent or no number.
std::uint64_t RowsGiven(const ArrayEntry& entry);

/// The stored name as users write it, for messages and logs: emb@2 for "emb.v2", emb@2.stale for
/// "emb.v2.stale"; other names as they are.
std::string ShownName(std::string_view stored);

/// "emb.v3".
std::string VersionName(std::string_view name, std::uint64_t version);

/// Name and version of a stored name "emb.v3"; nothing for any other name.
std::optional<std::pair<std::string_view, std::uint64_t>> SplitVersion(std::string_view stored);

/// What a user means by "emb", "emb@3" or "emb@live".
struct ArrayReference {
  std::string name;
  std::string selector;  ///< after the @; empty without one
};

/// Errors: kInvalidArgument, no such form: name and alias are names (CheckName), a version is a
/// number from 1 without leading zeros.
Result<ArrayReference> ParseArrayReference(std::string_view text);

/// Is `alias` fit for an alias: a name, not a number and not "latest"? Errors: kInvalidArgument.
Status CheckAlias(std::string_view alias);

/// The version that `selector` is a number of.
std::optional<std::uint64_t> ParseVersion(std::string_view selector);

/// The stored array of exactly this name; nullptr if there is none. `arrays` is sorted by name.
const ArrayEntry* FindStoredArray(std::span<const ArrayEntry> arrays, std::string_view name);

/// The versions of `name` that are stored, ascending.
std::vector<std::uint64_t> VersionsOf(const Manifest& manifest, std::string_view name);

/// The array that a reference stands for, which is not the exact name of one; nullptr if none. A
/// reference followed by ".crc32c" stands for the sidecar, one followed by ".stale" for the marks
/// of stale rows.
const ArrayEntry* FindVersion(const Manifest& manifest, std::string_view reference);

/// What must be true of a series in a manifest. Errors: kInvalidArgument.
Status CheckSeries(const ArraySeries& series, std::span<const ArrayEntry> arrays);

/// An array id (ArrayEntry::array_id) for a new array: what is dropped leaves rows behind that were
/// put into it (the delta knows arrays by id), so an id is never given again. Not small, and made
/// of the store's state and `salt`, which tells jobs apart that run at once.
std::uint64_t NewArrayId(const StoreId& store, const Manifest& manifest, std::string_view salt);

/// The series of a next generation that holds `arrays` (sorted by name): numbers are never given
/// again, and aliases stand for what they stood for, as far as it was carried over.
std::vector<ArraySeries> CarrySeries(std::span<const ArraySeries> series,
                                     std::span<const ArrayEntry> arrays);

}  // namespace rhizome
