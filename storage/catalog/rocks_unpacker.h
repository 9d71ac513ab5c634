#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rhizome {
inline namespace internal {

/// Returns bytes as text. Ownership: borrows the bytes.
inline std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads varints as RocksDB writes them (util/coding.h). Refuses encodings that are longer than
/// necessary, since RocksDB's own functions decode those inconsistently. After a failure every read
/// returns zeros. Ownership: borrows the bytes.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t Number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto next = Take(1);
      if (next.empty()) return 0;
      const auto byte = std::to_integer<std::uint64_t>(next[0]);
      value |= (byte & 0x7FU) << shift;
      if (byte >= 0x80) continue;
      if (byte == 0 && shift > 0) break;
      return value;
    }
    bad_ = true;
    return 0;
  }
  std::span<const std::byte> Take(std::uint64_t count) {
    bad_ = bad_ || count > bytes_.size();
    if (bad_) return {};
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  /// Reads a number; fails if it is above `most`.
  std::uint64_t NumberTo(std::uint64_t most) {
    const std::uint64_t value = Number();
    bad_ = bad_ || value > most;
    return bad_ ? 0 : value;
  }

  /// Reads a length, then that number of bytes.
  std::span<const std::byte> Field() { return Take(Number()); }

  bool bad() const { return bad_; }
  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  bool bad_ = false;
};

}  // namespace internal
}  // namespace rhizome
