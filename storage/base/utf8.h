#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rhizome {
inline namespace internal {

/// Returns whether `text` is well-formed UTF-8 (no surrogates, no overlong forms).
bool IsUtf8(std::string_view text);

/// Returns the length of the well-formed UTF-8 sequence at the beginning of `text`, which must not
/// be empty; returns 0 if there is none.
std::size_t Utf8Length(std::string_view text);

/// Returns the character that a well-formed UTF-8 sequence encodes.
std::uint32_t CodePointOf(std::string_view sequence);

}  // namespace internal
}  // namespace rhizome
