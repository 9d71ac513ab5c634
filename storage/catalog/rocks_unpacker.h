#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rhizome {

/// Reads numbers as RocksDB packs them (util/coding.h), and only so: in no more bytes than they
/// need, which RocksDB's own ways of reading them take for different things. After a failure only
/// zeros. Private. Ownership: the bytes are the caller's.
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

  /// A number up to `most`.
  std::uint64_t NumberTo(std::uint64_t most) {
    const std::uint64_t value = Number();
    bad_ = bad_ || value > most;
    return bad_ ? 0 : value;
  }

  /// Bytes behind their length.
  std::span<const std::byte> Field() { return Take(Number()); }

  bool bad() const { return bad_; }
  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  bool bad_ = false;
};

}  // namespace rhizome
