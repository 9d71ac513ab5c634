#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace rhizome::inline internal {

/// The words of an enumeration: one table, by which they are printed and parsed.
template <typename Kind, std::size_t count>
using NameTable = std::array<std::pair<Kind, std::string_view>, count>;

/// The word of `kind`; "unknown" where the table has none.
template <typename Kind, std::size_t count>
constexpr std::string_view NameOf(const NameTable<Kind, count>& names, Kind kind) {
  for (const auto& [known, name] : names) {
    if (known == kind) return name;
  }
  return "unknown";
}

/// Returns the kind of `name`; nothing if the table does not have it.
template <typename Kind, std::size_t count>
constexpr std::optional<Kind> KindOf(const NameTable<Kind, count>& names, std::string_view name) {
  for (const auto& [kind, known] : names) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

}  // namespace rhizome::inline internal
