#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/status.h"
#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {

/// Appends little-endian fields to a growing buffer, without alignment or padding.
class ByteWriter {
 public:
  template <std::integral T>
  void Number(T value) {
    std::array<std::byte, sizeof(T)> field;
    StoreLittle(field.data(), value);
    Bytes(field);
  }
  void Double(double value) { Number(std::bit_cast<std::uint64_t>(value)); }
  void Bytes(std::span<const std::byte> bytes);
  /// Writes a uint32 length, then the characters.
  void String(std::string_view text) {
    Number(static_cast<std::uint32_t>(text.size()));
    Bytes(std::as_bytes(std::span(text)));
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what ByteWriter wrote, and never reads past the end. The first failure is sticky: all
/// later reads return zeros, so a parser can read a whole record and check the status once. It
/// never allocates more than the remaining bytes can justify. Ownership: borrows the bytes.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::integral T>
  T Number(std::string_view field) {
    const auto from = Bytes(field, sizeof(T));
    return from.empty() ? T{0} : LoadLittle<T>(from.data());
  }
  /// Fails on infinities and NaN.
  double Double(std::string_view field);
  std::string String(std::string_view field, std::size_t max_bytes);
  /// Returns a view of the next `count` bytes; empty after a failure.
  std::span<const std::byte> Bytes(std::string_view field, std::size_t count);

  /// Reads a uint64 count of records that are each at least `record_bytes` long. Fails if the
  /// remaining bytes are too few for that many records, so that the caller may safely reserve
  /// memory for them.
  std::size_t Count(std::string_view field, std::size_t record_bytes, std::size_t max_count);

  /// Sets kCorruption at the position of the last read, unless an earlier read failed already.
  void Refuse(std::string_view field, std::string_view why);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  std::size_t left() const { return bytes_.size() - offset_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
  std::size_t field_offset_ = 0;
  Status status_;
};

}  // namespace internal
}  // namespace rhizome
