#include "storage/array/array_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "rhizome/file_system.h"
#include "storage/array/array_rules.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"

namespace rhizome {

namespace {

constexpr std::string_view kVersionMark = ".v";
constexpr auto kMaxVersion = std::uint64_t{INT64_MAX};

/// Returns the suffix of an array that accompanies another one under its name; empty for other
/// names. Arrays of stale marks have a sidecar, too.
std::string_view CompanionSuffix(std::string_view name) {
  for (const std::string_view suffix : {kSidecarSuffix, kStaleSuffix})
    if (name.ends_with(suffix)) return suffix;
  return {};
}

Status Bad(const ArraySeries& series, std::string_view why) {
  return Status::InvalidArgument(fmt::format("series '{}': {}", series.name, why));
}

Status CheckAliasOf(const ArraySeries& series, const ArrayAlias& alias,
                    std::span<const ArrayEntry> arrays) {
  RHIZOME_RETURN_IF_ERROR(CheckAlias(alias.name));
  if (alias.history.empty() || alias.history.size() > kMaxAliasHistory)
    return Bad(series,
               fmt::format("alias '{}' names no version, or its history is too long", alias.name));
  for (const std::uint64_t version : alias.history) {
    if (FindStoredArray(arrays, VersionName(series.name, version)) == nullptr)
      return Bad(series, fmt::format("alias '{}' names version {}, which does not exist",
                                     alias.name, version));
  }
  return Status::Ok();
}

const ArrayAlias* FindAlias(const ArraySeries& series, std::string_view alias) {
  for (const ArrayAlias& one : series.aliases)
    if (one.name == alias) return &one;
  return nullptr;
}

}  // namespace

std::uint64_t RowsGiven(const ArrayEntry& entry) {
  for (const auto& [key, value] : entry.attributes) {
    if (key != kRowsGivenAttribute) continue;
    std::uint64_t rows = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rows);
    const bool number = error == std::errc() && end == value.data() + value.size();
    return number ? std::min(rows, entry.rows) : entry.rows;
  }
  return entry.rows;
}

std::string VersionName(std::string_view name, std::uint64_t version) {
  return fmt::format("{}{}{}", name, kVersionMark, version);
}

std::string ShownName(std::string_view stored) {
  if (const std::string_view suffix = CompanionSuffix(stored); !suffix.empty())
    return ShownName(stored.substr(0, stored.size() - suffix.size())).append(suffix);
  const auto version = SplitVersion(stored);
  return version ? fmt::format("{}@{}", version->first, version->second) : std::string(stored);
}

std::optional<std::uint64_t> ParseVersion(std::string_view selector) {
  std::uint64_t version = 0;
  const char* const end = selector.data() + selector.size();
  const auto [at, error] = std::from_chars(selector.data(), end, version);
  if (error != std::errc() || at != end || selector.front() == '0' || version > kMaxVersion)
    return std::nullopt;
  return version;
}

std::optional<std::pair<std::string_view, std::uint64_t>> SplitVersion(std::string_view stored) {
  const std::size_t mark = stored.rfind(kVersionMark);
  if (mark == 0 || mark == std::string_view::npos) return std::nullopt;
  const auto version = ParseVersion(stored.substr(mark + kVersionMark.size()));
  if (!version) return std::nullopt;
  return std::pair(stored.substr(0, mark), *version);
}

Status CheckAlias(std::string_view alias) {
  RHIZOME_RETURN_IF_ERROR(CheckName("alias", alias));
  const bool digits =
      std::all_of(alias.begin(), alias.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits && alias != kLatest) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("alias '{}': numbers and '{}' are reserved for versions; choose another name",
                  alias, kLatest));
}

Result<ArrayReference> ParseArrayReference(std::string_view text) {
  const std::size_t at = text.find('@');
  ArrayReference reference{std::string(text.substr(0, at)), {}};
  RHIZOME_RETURN_IF_ERROR(CheckName("array", reference.name));
  if (at == std::string_view::npos) return reference;
  reference.selector = text.substr(at + 1);
  if (reference.selector == kLatest || ParseVersion(reference.selector)) return reference;
  if (const Status alias = CheckAlias(reference.selector); !alias.ok()) {
    return Fail(Status::InvalidArgument(
        fmt::format("array '{}': a version (emb@3), an alias (emb@live) or '{}' must follow the @",
                    text, kLatest)));
  }
  return reference;
}

const ArrayEntry* FindStoredArray(std::span<const ArrayEntry> arrays, std::string_view name) {
  const auto at =
      std::lower_bound(arrays.begin(), arrays.end(), name,
                       [](const ArrayEntry& array, std::string_view n) { return array.name < n; });
  return at != arrays.end() && at->name == name ? &*at : nullptr;
}

std::vector<std::uint64_t> VersionsOf(const Manifest& manifest, std::string_view name) {
  std::vector<std::uint64_t> versions;
  const std::string prefix = fmt::format("{}{}", name, kVersionMark);
  const auto first = std::lower_bound(
      manifest.arrays.begin(), manifest.arrays.end(), prefix,
      [](const ArrayEntry& array, const std::string& p) { return array.name < p; });
  for (auto at = first; at != manifest.arrays.end() && at->name.starts_with(prefix); ++at) {
    const auto version = ParseVersion(std::string_view(at->name).substr(prefix.size()));
    if (version) versions.push_back(*version);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

/// Resolves a reference in this order: a suffix such as ".crc32c" is removed and the companion of
/// the array is looked up; a number is a version; an alias refers to its latest entry; "latest", or
/// a plain name without a live alias, is the newest version.
const ArrayEntry* FindVersion(const Manifest& manifest, std::string_view reference) {
  if (const std::string_view suffix = CompanionSuffix(reference); !suffix.empty()) {
    reference.remove_suffix(suffix.size());
    const ArrayEntry* array = manifest.FindArray(reference);
    if (array == nullptr) return nullptr;
    return FindStoredArray(manifest.arrays, fmt::format("{}{}", array->name, suffix));
  }
  const std::size_t at = reference.find('@');
  const std::string_view name = reference.substr(0, at);
  const std::string_view selector =
      at == std::string_view::npos ? kLiveAlias : reference.substr(at + 1);
  const auto stored = [&](std::uint64_t version) {
    return FindStoredArray(manifest.arrays, VersionName(name, version));
  };
  if (const auto version = ParseVersion(selector)) return stored(*version);
  const ArraySeries* series = manifest.FindSeries(name);
  const ArrayAlias* alias = series == nullptr ? nullptr : FindAlias(*series, selector);
  if (alias != nullptr) return stored(alias->history.back());
  const bool newest = at == std::string_view::npos || selector == kLatest;
  const auto versions = newest ? VersionsOf(manifest, name) : std::vector<std::uint64_t>();
  if (!versions.empty()) return stored(versions.back());
  // An array without versions is its own newest version.
  return selector == kLatest ? FindStoredArray(manifest.arrays, name) : nullptr;
}

Status CheckSeries(const ArraySeries& series, std::span<const ArrayEntry> arrays) {
  RHIZOME_RETURN_IF_ERROR(CheckName("series", series.name));
  if (series.last_version == 0 || series.last_version > kMaxVersion)
    return Bad(series, fmt::format("last version {}", series.last_version));
  if (series.aliases.size() > kMaxAliases) return Bad(series, "too many aliases");
  for (std::size_t i = 0; i < series.aliases.size(); ++i) {
    if (i > 0 && series.aliases[i - 1].name >= series.aliases[i].name)
      return Bad(series,
                 fmt::format("alias '{}' is not sorted or not unique", series.aliases[i].name));
    RHIZOME_RETURN_IF_ERROR(CheckAliasOf(series, series.aliases[i], arrays));
  }
  return Status::Ok();
}

std::uint64_t NewArrayId(const StoreId& store, const Manifest& manifest, std::string_view salt) {
  constexpr std::uint64_t kNotSmall = std::uint64_t{1} << 62;  // ingestions count from 1
  const std::string text =
      fmt::format("{} {} {} {}", store.ToString(), manifest.generation, manifest.version, salt);
  const Hash128 hash = Xxh3(std::as_bytes(std::span(text)));
  return LoadLittle<std::uint64_t>(hash.data()) | kNotSmall;
}

std::vector<ArraySeries> CarrySeries(std::span<const ArraySeries> series,
                                     std::span<const ArrayEntry> arrays) {
  std::vector<ArraySeries> carried(series.begin(), series.end());
  for (ArraySeries& one : carried) {
    for (ArrayAlias& alias : one.aliases) {
      const auto lost = [&](std::uint64_t version) {
        return FindStoredArray(arrays, VersionName(one.name, version)) == nullptr;
      };
      // An alias whose version is gone is dropped; it does not fall back to an older version.
      if (lost(alias.history.back())) alias.history.clear();
      std::erase_if(alias.history, lost);
    }
    std::erase_if(one.aliases, [](const ArrayAlias& alias) { return alias.history.empty(); });
  }
  return carried;
}

}  // namespace rhizome
