#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Brackets within brackets that JSON of users and of stores may have.
inline constexpr std::size_t kMaxJsonNesting = 32;

/// Is `text` nested deeper? The library's functions that go through a value take stack for each
/// level, so that deep ones end the process.
bool IsJsonTooDeep(std::string_view text);

/// Parses JSON that came from outside. What is none, nested too deep, or has a key twice in one
/// object (of which a plain parser keeps the last, without a word) is_discarded(). `repeated`,
/// where it is given, is the first such key.
nlohmann::json ParseUntrustedJson(std::string_view text,
                                  std::optional<std::string>* repeated = nullptr);

}  // namespace internal
}  // namespace rhizome
