#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns `text` in a form that is safe to show in a terminal, a log or a page: it has no line
/// breaks and cannot move the cursor, change colours, reorder or hide adjacent text. Names, ids and
/// file names may come from an untrusted store, so every message and table passes through this
/// function.
///
/// C0 and C1 controls, DEL, line and paragraph separators, bidirectional controls and invisible
/// characters are written as JSON escapes ("\n", "\u001b", "\u202e"), characters above U+FFFF as
/// "\U000e0041", and bytes that are not UTF-8 as "\x9b". All other text is unchanged, including
/// backslashes, so that applying the function twice changes nothing. Printable ASCII is returned as
/// it is, without an allocation.
std::string EscapedText(std::string text);

/// Shortens external text, such as a line of input, for use in a message: keeps at most
/// `max_bytes` bytes, cuts between two UTF-8 characters, and appends " ..." if anything was cut.
inline std::string Excerpt(std::string_view text, std::size_t max_bytes = 300) {
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + " ...";
}

}  // namespace internal
}  // namespace rhizome
