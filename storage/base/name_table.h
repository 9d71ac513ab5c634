#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace rhizome {
inline namespace internal {

/// The names of an enumeration, in one table that is used for printing and for parsing.
template <typename Kind, std::size_t count>
using NameTable = std::array<std::pair<Kind, std::string_view>, count>;

/// Returns the name of `kind`; "unknown" if the table has none.
template <typename Kind, std::size_t count>
constexpr std::string_view NameOf(const NameTable<Kind, count>& names, Kind kind) {
  for (const auto& [known, name] : names) {
    if (known == kind) return name;
  }
  return "unknown";
}

/// Returns the value called `name`; nullopt if the table has none.
template <typename Kind, std::size_t count>
constexpr std::optional<Kind> KindOf(const NameTable<Kind, count>& names, std::string_view name) {
  for (const auto& [kind, known] : names) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

}  // namespace internal
}  // namespace rhizome
