#include "rhizome/storage/catalog_log.h"

#include <algorithm>
#include <optional>

#include "rhizome/storage/hash.h"
#include "rhizome/storage/little_endian.h"

namespace rhizome {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kHeaderBytes = 7;
constexpr std::uint64_t kLengthAt = 4;
constexpr std::uint64_t kTypeAt = 6;
constexpr std::uint64_t kSectorBytes = 512;

// Whole, first, middle and last part of what is written at once; how it is compressed. RocksDB
// knows more types, of logs that it recycles, which ours are not.
bool IsType(std::byte type) {
  const auto value = std::to_integer<unsigned>(type);
  return (value >= 1 && value <= 4) || value == 9;
}

std::uint32_t Masked(std::uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U; }

/// Is there a right record of `length` bytes of payload at `at`?
bool IsRecord(Bytes bytes, std::uint64_t at, std::uint64_t length) {
  const std::uint64_t left = kLogBlockBytes - at % kLogBlockBytes;
  if (left < kHeaderBytes + length || bytes.size() - at < kHeaderBytes + length) return false;
  if (!IsType(bytes[at + kTypeAt])) return false;
  const std::uint32_t crc = Crc32c(bytes.subspan(at + kTypeAt, 1 + length));
  return LoadLittle<std::uint32_t>(bytes.data() + at) == Masked(crc);
}

/// The end of the right record at `at`; nothing if there is none.
std::optional<std::uint64_t> RecordEnd(Bytes bytes, std::uint64_t at) {
  if (bytes.size() - at < kHeaderBytes) return std::nullopt;
  const std::uint64_t length = LoadLittle<std::uint16_t>(bytes.data() + at + kLengthAt);
  if (!IsRecord(bytes, at, length)) return std::nullopt;
  return at + kHeaderBytes + length;
}

/// Where the next record begins: not in the last bytes of a block.
std::uint64_t SkipTrailer(std::uint64_t at) {
  const std::uint64_t left = kLogBlockBytes - at % kLogBlockBytes;
  return left < kHeaderBytes ? at + left : at;
}

bool AllZero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool HoldsRecord(Bytes bytes, std::uint64_t from) {
  for (std::uint64_t at = from; at + kHeaderBytes <= bytes.size(); ++at)
    if (RecordEnd(bytes, at)) return true;
  return false;
}

/// Can a power cut have left what follows `at`, where a record should begin?
bool IsTorn(Bytes bytes, std::uint64_t at) {
  const Bytes rest = bytes.subspan(at);
  if (rest.size() < kHeaderBytes || AllZero(rest)) return true;
  if (HoldsRecord(bytes, at + 1)) return false;
  const std::uint64_t length = LoadLittle<std::uint16_t>(rest.data() + kLengthAt);
  const std::uint64_t in_block = kLogBlockBytes - at % kLogBlockBytes;
  const std::uint64_t next_sector = (at / kSectorBytes + 1) * kSectorBytes;
  const bool zeros_follow = next_sector < bytes.size() && bytes.back() == std::byte{0} &&
                            AllZero(bytes.last(std::min<std::uint64_t>(
                                (bytes.size() - 1) % kSectorBytes + 1, bytes.size() - at)));
  if (zeros_follow) return true;
  const bool cut = kHeaderBytes + length > rest.size() && kHeaderBytes + length <= in_block;
  return cut && IsType(rest[kTypeAt]) && !IsRecord(bytes, at, rest.size() - kHeaderBytes);
}

}  // namespace

LogScan ScanLog(std::span<const std::byte> bytes, std::uint64_t begin) {
  LogScan scan{.good_bytes = begin};
  for (std::uint64_t at = SkipTrailer(begin); at < bytes.size();
       at = SkipTrailer(scan.good_bytes)) {
    const auto end = RecordEnd(bytes, at);
    if (!end) {
      scan.damaged = !IsTorn(bytes, at);
      return scan;
    }
    scan.good_bytes = *end;
  }
  return scan;
}

}  // namespace rhizome
