#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rhizome::inline internal {

/// Shortens a text that came from outside, such as a line of input, for use in a message: at most
/// `most_bytes` bytes, cut between two UTF-8 characters, with " ..." behind them if any was cut.
inline std::string Excerpt(std::string_view text, std::size_t most_bytes = 300) {
  if (text.size() <= most_bytes) return std::string(text);
  std::size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + " ...";
}

}  // namespace rhizome::inline internal
