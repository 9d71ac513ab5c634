#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Max nesting of arrays and objects in JSON from users and stores. It bounds the stack of
/// functions that recurse over a value.
inline constexpr std::size_t kMaxJsonNesting = 32;

/// Returns whether `text` is nested deeper than kMaxJsonNesting. Brackets in strings do not count.
bool IsJsonTooDeep(std::string_view text);

/// Parses JSON from an external source. The result is_discarded() if `text` is not JSON, is nested
/// too deep, or repeats a key in one object (an ordinary parser silently keeps the last).
/// `*repeated`, if given, is set to the first repeated key.
nlohmann::json ParseUntrustedJson(std::string_view text,
                                  std::optional<std::string>* repeated = nullptr);

}  // namespace internal
}  // namespace rhizome
