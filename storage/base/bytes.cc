#include "storage/base/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "storage/base/escaped_text.h"

namespace rhizome {
inline namespace internal {

// This file reads and writes little-endian fields of variable length, and checks and escapes UTF-8.
// ByteReader::Bytes is the only place that advances the read position; every other read goes
// through it and returns a zero or an empty value after a failure. EscapedText walks over a text
// one UTF-8 sequence at a time and escapes the sequences that a terminal would obey or hide.

void ByteWriter::Bytes(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::span<const std::byte> ByteReader::Bytes(std::string_view field, std::size_t count) {
  if (!ok()) return {};
  field_offset_ = offset_;
  if (count > left()) {
    Refuse(field, fmt::format("needs {} bytes, but only {} are left", count, left()));
    return {};
  }
  offset_ += count;
  return bytes_.subspan(field_offset_, count);
}

double ByteReader::Double(std::string_view field) {
  const double value = std::bit_cast<double>(Number<std::uint64_t>(field));
  if (std::isfinite(value)) return value;
  Refuse(field, "is not a finite number");
  return 0;
}

std::string ByteReader::String(std::string_view field, std::size_t max_bytes) {
  const auto length = Number<std::uint32_t>(field);
  if (length > max_bytes) {
    Refuse(field, fmt::format("has {} bytes, more than {}", length, max_bytes));
    return {};
  }
  const auto bytes = Bytes(field, length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t ByteReader::Count(std::string_view field, std::size_t record_bytes,
                              std::size_t max_count) {
  const auto count = Number<std::uint64_t>(field);
  if (count <= max_count && count <= left() / record_bytes) return count;
  Refuse(field, fmt::format("counts {} records, more than can follow", count));
  return 0;
}

void ByteReader::Refuse(std::string_view field, std::string_view why) {
  if (ok())
    status_ = Status::Corruption(fmt::format("offset {}, {}: {}", field_offset_, field, why));
}

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

/// Returns the length of the well-formed UTF-8 sequence at the beginning of `text`, which must not
/// be empty; returns 0 if there is none.
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

std::string Escape(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return code > 0xFFFF ? fmt::format("\\U{:08x}", code) : fmt::format("\\u{:04x}", code);
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string EscapedText(std::string text) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (std::all_of(text.begin(), text.end(), plain)) return text;
  std::string shown;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = Utf8Length(rest);
    const std::string_view character = rest.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(rest[0]));
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
