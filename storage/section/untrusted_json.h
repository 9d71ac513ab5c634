#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The deepest nesting of arrays and objects that JSON from users and stores may have: a bound on
/// the stack of functions that recurse over a value.
inline constexpr std::size_t kMaxJsonNesting = 32;

/// Returns whether `text` is nested deeper than kMaxJsonNesting. Brackets in strings do not count.
bool IsJsonTooDeep(std::string_view text);

/// Parses JSON that came from outside. The result is_discarded() if `text` is not JSON, is nested
/// too deep, or repeats a key in one object (a plain parser silently keeps the last). `*repeated`,
/// if given, is set to the first such key.
nlohmann::json ParseUntrustedJson(std::string_view text,
                                  std::optional<std::string>* repeated = nullptr);

}  // namespace internal
}  // namespace rhizome
