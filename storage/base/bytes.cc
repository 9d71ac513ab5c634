#include "rhizome/storage/bytes.h"

#include <fmt/format.h>

#include <cmath>

namespace rhizome::inline internal {

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

/// The length of the UTF-8 sequence that a lead byte begins (0: no sequence begins with it), and
/// the range of its second byte. Source: table 3-7 of the Unicode Standard.
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

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Sequence sequence = SequenceOf(static_cast<unsigned char>(text[i]));
    if (sequence.length == 0 || sequence.length > text.size() - i) return false;
    for (std::size_t k = 1; k < sequence.length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      const unsigned char min = k == 1 ? sequence.second_min : 0x80;
      const unsigned char max = k == 1 ? sequence.second_max : 0xBF;
      if (next < min || next > max) return false;
    }
    i += sequence.length;
  }
  return true;
}

}  // namespace rhizome::inline internal
