#include "storage/base/utf8.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Length of the UTF-8 sequence that starts with a given lead byte (0: not a lead byte), and the
/// valid range of its second byte. Source: table 3-7 of the Unicode Standard.
struct Sequence {
  std::size_t length;
  unsigned char second_min;
  unsigned char second_max;
};

Sequence SequenceOf(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead < 0xF0) {
    const unsigned char min = lead == 0xE0 ? 0xA0 : 0x80;  // no overlong form
    const unsigned char max = lead == 0xED ? 0x9F : 0xBF;  // no surrogate
    return {3, min, max};
  }
  if (lead > 0xF4) return {0, 0, 0};
  const unsigned char min = lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char max = lead == 0xF4 ? 0x8F : 0xBF;
  return {4, min, max};
}

}  // namespace

std::size_t Utf8Length(std::string_view text) {
  const Sequence sequence = SequenceOf(static_cast<unsigned char>(text[0]));
  if (sequence.length > text.size()) return 0;
  for (std::size_t k = 1; k < sequence.length; ++k) {
    const auto next = static_cast<unsigned char>(text[k]);
    const unsigned char min = k == 1 ? sequence.second_min : 0x80;
    const unsigned char max = k == 1 ? sequence.second_max : 0xBF;
    if (next < min || next > max) return 0;
  }
  return sequence.length;
}

std::uint32_t CodePointOf(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead;
  std::uint32_t code = lead & (0xFFU >> (sequence.size() + 1));
  for (const char next : sequence.substr(1))
    code = code << 6 | (static_cast<unsigned char>(next) & 0x3FU);
  return code;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace internal
}  // namespace rhizome
