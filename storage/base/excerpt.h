#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The beginning of a text that came from outside, for a message: a line of input may be long.
inline std::string Excerpt(std::string_view text, std::size_t most_bytes = 300) {
  if (text.size() <= most_bytes) return std::string(text);
  std::size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + " ...";
}

}  // namespace internal
}  // namespace rhizome
