#include "storage/base/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace rhizome {
inline namespace internal {

// This file reads and writes little-endian fields of variable length. ByteReader::Bytes is the only
// place that advances the read position; every other read goes through it and returns a zero or an
// empty value after a failure.

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
    Refuse(field, fmt::format("has {} bytes, but at most {} are allowed", length, max_bytes));
    return {};
  }
  const auto bytes = Bytes(field, length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t ByteReader::Count(std::string_view field, std::size_t record_bytes,
                              std::size_t max_count) {
  const auto count = Number<std::uint64_t>(field);
  if (count <= max_count && count <= left() / record_bytes) return count;
  Refuse(field,
         fmt::format("counts {} records, which is more than the remaining bytes can hold", count));
  return 0;
}

void ByteReader::Refuse(std::string_view field, std::string_view why) {
  if (ok())
    status_ = Status::Corruption(fmt::format("offset {}, {}: {}", field_offset_, field, why));
}

}  // namespace internal
}  // namespace rhizome
