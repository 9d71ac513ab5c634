#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {

/// The column families of a catalogue, in the order of RocksDB's family numbers.
inline constexpr std::array<const char*, 3> kFamilyNames = {"default", "meta", "delta"};
inline constexpr std::uint32_t kMetaFamily = 1;
inline constexpr std::uint32_t kDeltaFamily = 2;

/// The only key in the family "meta".
inline constexpr std::string_view kCurrentKey = "current";

// A key of the family "delta" (storage/FORMAT.md) consists of the number of the commit (big-endian,
// so that RocksDB sorts entries by commit), the kind of the key, and, for a row, array and vertex
// (big-endian).
enum class DeltaKey : std::uint8_t { kRecord = 0, kRow = 1 };

/// Returns the number of the commit in such a key.
inline std::uint64_t CommitOfDeltaKey(std::string_view key) {
  std::uint64_t commit = 0;
  for (const char byte : key.substr(0, sizeof(commit)))
    commit = commit << 8U | static_cast<std::uint8_t>(byte);
  return commit;
}

inline bool IsDeltaKey(std::string_view key) {
  constexpr std::size_t kCommitBytes = 8;
  constexpr std::size_t kRowBytes = 16;
  if (key.size() <= kCommitBytes) return false;
  const auto kind = static_cast<DeltaKey>(key[kCommitBytes]);
  const std::size_t rest = key.size() - kCommitBytes - 1;
  return (kind == DeltaKey::kRecord && rest == 0) || (kind == DeltaKey::kRow && rest == kRowBytes);
}

/// Max number of a change: RocksDB's sequence numbers have 56 bits.
inline constexpr std::uint64_t kMaxRocksChange = (std::uint64_t{1} << 56) - 1;

/// Max file number that is accepted: more than any catalogue needs, and far from an overflow.
inline constexpr std::uint64_t kMaxRocksNumber = std::uint64_t{1} << 48;

/// The type of a change, as RocksDB stores it. A catalogue has only puts and range deletions.
enum class RocksType : std::uint8_t { kValue = 1, kRangeDeletion = 15 };

/// RocksDB's internal key: the user's key, followed by the number of the change and its type,
/// packed into 8 bytes. Changes of one user key are sorted with the latest first.
struct RocksKey {
  std::string_view user;
  std::uint64_t change = 0;
  RocksType type = RocksType::kValue;

  /// Returns nullopt if a catalogue cannot contain such a key.
  static std::optional<RocksKey> Parse(std::string_view bytes) {
    constexpr std::size_t kPackedBytes = 8;
    if (bytes.size() < kPackedBytes) return std::nullopt;
    const std::string_view user = bytes.substr(0, bytes.size() - kPackedBytes);
    const auto packed =
        LoadLittle<std::uint64_t>(std::as_bytes(std::span(bytes)).last(kPackedBytes).data());
    const auto type = static_cast<RocksType>(packed & 0xFF);
    if (type != RocksType::kValue && type != RocksType::kRangeDeletion) return std::nullopt;
    return RocksKey{.user = user, .change = packed >> 8U, .type = type};
  }

  friend std::strong_ordering operator<=>(const RocksKey& a, const RocksKey& b) {
    const auto order = a.user.compare(b.user);
    if (order != 0) return order <=> 0;
    if (a.change != b.change) return b.change <=> a.change;
    return b.type <=> a.type;
  }
  friend bool operator==(const RocksKey& a, const RocksKey& b) { return (a <=> b) == 0; }
};

}  // namespace internal
}  // namespace rhizome
