// EscapedText walks over a text one UTF-8 sequence at a time and escapes the sequences that a
// terminal would obey or hide. Status uses it, and tools/device/run.sh compiles both without fmt.

#include "storage/base/escaped_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "storage/base/utf8.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns whether a character is invisible, controls the terminal or changes the order of the
/// text.
bool IsHidden(std::uint32_t code) {
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
  };
  constexpr std::array<Range, 11> kHidden = {{
      {0x00, 0x1F},        // C0 controls
      {0x7F, 0x9F},        // DEL, C1 controls
      {0xAD, 0xAD},        // soft hyphen
      {0x61C, 0x61C},      // Arabic letter mark
      {0x180E, 0x180E},    // Mongolian vowel separator
      {0x200B, 0x200F},    // zero-width characters, left-to-right and right-to-left marks
      {0x2028, 0x202E},    // line and paragraph separators, bidirectional embeddings and overrides
      {0x2060, 0x206F},    // word joiner, invisible operators, bidirectional isolates
      {0xFEFF, 0xFEFF},    // byte order mark
      {0xFFF9, 0xFFFB},    // interlinear annotation
      {0xE0000, 0xE0FFF},  // tags, variation selectors
  }};
  return std::any_of(kHidden.begin(), kHidden.end(), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

/// Returns a backslash, `kind`, and `code` in `digits` hexadecimal digits.
std::string HexEscape(char kind, int digits, unsigned code) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "\\%c%0*x", kind, digits, code);
  return text.data();
}

std::string Escape(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return code > 0xFFFF ? HexEscape('U', 8, code) : HexEscape('u', 4, code);
}

}  // namespace

std::string EscapedText(std::string text) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (std::all_of(text.begin(), text.end(), plain)) return text;
  std::string shown;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = Utf8Length(rest);
    const std::string_view character = rest.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0) {
      shown += HexEscape('x', 2, static_cast<unsigned char>(rest[0]));
    } else if (const std::uint32_t code = CodePointOf(character); IsHidden(code)) {
      shown += Escape(code);
    } else {
      shown += character;
    }
    rest.remove_prefix(character.size());
  }
  return shown;
}

}  // namespace internal
}  // namespace rhizome
