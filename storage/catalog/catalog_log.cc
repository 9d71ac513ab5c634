#include "storage/catalog/catalog_log.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <vector>

#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/catalog/crc_shift.h"

namespace rhizome {
inline namespace internal {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kLengthAt = 4;
constexpr std::uint64_t kTypeAt = 6;
constexpr std::uint64_t kSectorBytes = 512;  // the smallest unit that a disk writes atomically

// The types are full, first, middle and last (1 to 4), and the compression setting (9). RocksDB has
// more types, for recycled logs, which a catalogue does not use.
bool IsType(std::byte type) {
  const auto value = std::to_integer<unsigned>(type);
  return (value >= 1 && value <= 4) || value == 9;
}

/// Returns whether there is a record at `at` with `length` bytes of payload and a correct checksum.
bool IsRecord(Bytes bytes, std::uint64_t at, std::uint64_t length) {
  const std::uint64_t left = kLogBlockBytes - at % kLogBlockBytes;
  if (left < kLogHeaderBytes + length || bytes.size() - at < kLogHeaderBytes + length) return false;
  if (!IsType(bytes[at + kTypeAt])) return false;
  const std::uint32_t crc = Crc32c(bytes.subspan(at + kTypeAt, 1 + length));
  return LoadLittle<std::uint32_t>(bytes.data() + at) == MaskedLogCrc(crc);
}

/// Returns the end of the valid record at `at`; nullopt if there is none.
std::optional<std::uint64_t> RecordEnd(Bytes bytes, std::uint64_t at) {
  if (bytes.size() - at < kLogHeaderBytes) return std::nullopt;
  const std::uint64_t length = LoadLittle<std::uint16_t>(bytes.data() + at + kLengthAt);
  if (!IsRecord(bytes, at, length)) return std::nullopt;
  return at + kLogHeaderBytes + length;
}

/// Returns where the next record begins: if the rest of a block is too short for a header, it is
/// skipped.
std::uint64_t SkipTrailer(std::uint64_t at) {
  const std::uint64_t left = kLogBlockBytes - at % kLogBlockBytes;
  return left < kLogHeaderBytes ? at + left : at;
}

bool AllZero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Finds valid records at arbitrary offsets. It derives the checksum of any part of a block from
/// the checksums of two prefixes of the block. Computing the checksum of each candidate separately
/// would cost thousands of bytes per byte of a log with a repetitive pattern.
class RecordFinder {
 public:
  /// `bytes` must begin at the beginning of a block.
  explicit RecordFinder(Bytes bytes) : bytes_(bytes), sums_(kLogBlockBytes + 1) {}

  /// Returns the same as RecordEnd.
  std::optional<std::uint64_t> EndAt(std::uint64_t at) {
    if (bytes_.size() - at < kLogHeaderBytes || !IsType(bytes_[at + kTypeAt])) return std::nullopt;
    const std::uint64_t length = LoadLittle<std::uint16_t>(bytes_.data() + at + kLengthAt);
    const std::uint64_t end = at + kLogHeaderBytes + length;
    const std::uint64_t in_block = at % kLogBlockBytes;
    if (end > bytes_.size()) return std::nullopt;
    if (in_block + kLogHeaderBytes + length > kLogBlockBytes) return std::nullopt;
    SumBlock(at - in_block);
    const std::uint32_t before = sums_[in_block + kTypeAt];
    const std::uint32_t crc =
        ~(sums_[in_block + kLogHeaderBytes + length] ^ shifter_.Shift(~before, 1 + length));
    if (LoadLittle<std::uint32_t>(bytes_.data() + at) != MaskedLogCrc(crc)) return std::nullopt;
    return end;
  }

 private:
  /// Computes the CRC register after each prefix of the block, starting from zero.
  void SumBlock(std::uint64_t begin) {
    if (begin == block_) return;
    block_ = begin;
    const Bytes block =
        bytes_.subspan(begin, std::min<std::uint64_t>(kLogBlockBytes, bytes_.size() - begin));
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      sums_[i] = sum;
      sum = (sum >> 8U) ^ kCrcOfByte[(sum ^ std::to_integer<std::uint32_t>(block[i])) & 0xFFU];
    }
    sums_[block.size()] = sum;
  }

  static const CrcShifter& Shifter() {
    static const CrcShifter shifter(kLogBlockBytes);
    return shifter;
  }

  const Bytes bytes_;
  const CrcShifter& shifter_ = Shifter();
  std::uint64_t block_ = ~std::uint64_t{0};
  std::vector<std::uint32_t> sums_;
};

bool HoldsRecord(Bytes bytes, std::uint64_t from) {
  RecordFinder finder(bytes);
  for (std::uint64_t at = from; at + kLogHeaderBytes <= bytes.size(); ++at)
    if (finder.EndAt(at)) return true;
  return false;
}

std::uint32_t Unmasked(std::uint32_t masked) { return std::rotl(masked - 0xA282EAD8U, 15); }

/// Returns whether flipping one bit of the record of `length` bytes, or of its checksum, makes it
/// valid. A CRC is linear: the effect of one bit does not depend on the other bits.
bool IsOneBitOff(Bytes bytes, std::uint64_t at, std::uint64_t length) {
  const std::uint64_t left = kLogBlockBytes - at % kLogBlockBytes;
  if (left < kLogHeaderBytes + length || bytes.size() - at < kLogHeaderBytes + length) return false;
  const auto stored = LoadLittle<std::uint32_t>(bytes.data() + at);
  const std::uint32_t crc = Crc32c(bytes.subspan(at + kTypeAt, 1 + length));
  if (std::popcount(stored ^ MaskedLogCrc(crc)) == 1) return true;
  const std::uint32_t difference = Unmasked(stored) ^ crc;
  std::array<std::uint32_t, 8> changes{};
  for (unsigned bit = 0; bit < 8; ++bit) changes[bit] = kCrcOfByte[std::size_t{1} << bit];
  for (std::uint64_t byte = 0; byte <= length; ++byte) {
    for (std::uint32_t& change : changes) {
      if (change == difference) return true;
      change = (change >> 8U) ^ kCrcOfByte[change & 0xFFU];
    }
  }
  return false;
}

/// As above, for a record whose wrong bit may be in the length.
bool IsFlipped(Bytes bytes, std::uint64_t at) {
  const auto length = LoadLittle<std::uint16_t>(bytes.data() + at + kLengthAt);
  if (IsOneBitOff(bytes, at, length)) return true;
  for (unsigned bit = 0; bit < 16; ++bit)
    if (IsRecord(bytes, at, length ^ (1U << bit))) return true;
  return false;
}

constexpr std::string_view kMark = "rzsync";

/// The head of a RocksDB write batch, with which the first or only record of a write begins: number
/// of the first change, number of changes, entries. Our batches have a SyncMark as their first
/// entry.
struct BatchHead {
  std::uint64_t last_change = 0;
  std::uint64_t synced_change = 0;
};
std::optional<BatchHead> HeadOf(Bytes record) {
  constexpr std::size_t kCountAt = 8;
  constexpr std::size_t kFirstAt = 12;
  constexpr std::byte kLogData{3};
  constexpr std::size_t kMarkBytes = kMark.size() + sizeof(std::uint64_t);
  const Bytes batch = record.subspan(kLogHeaderBytes);
  if (batch.size() < kFirstAt + 2 + kMarkBytes) return std::nullopt;
  const Bytes mark = batch.subspan(kFirstAt + 2);
  if (batch[kFirstAt] != kLogData || batch[kFirstAt + 1] != std::byte{kMarkBytes} ||
      !std::ranges::equal(mark.first(kMark.size()), std::as_bytes(std::span(kMark))))
    return std::nullopt;
  const auto first = LoadLittle<std::uint64_t>(batch.data());
  const auto count = LoadLittle<std::uint32_t>(batch.data() + kCountAt);
  return BatchHead{.last_change = first + std::max(count, 1U) - 1,
                   .synced_change = LoadLittle<std::uint64_t>(mark.data() + kMark.size())};
}

/// Returns whether the record at `at` contains a sector of zeros. Two partial sectors count as
/// well: the part from `at` to the end of its sector, and the part after the header, which RocksDB
/// writes before the rest.
bool HasHole(Bytes bytes, std::uint64_t at) {
  const std::uint64_t length = LoadLittle<std::uint16_t>(bytes.data() + at + kLengthAt);
  const std::uint64_t end = std::min<std::uint64_t>(at + kLogHeaderBytes + length, bytes.size());
  const auto zero_from = [&](std::uint64_t from) {
    const std::uint64_t next = (from / kSectorBytes + 1) * kSectorBytes;
    return from < end &&
           AllZero(bytes.subspan(from, std::min<std::uint64_t>(next, bytes.size()) - from));
  };
  if (zero_from(at) || zero_from(at + kLogHeaderBytes)) return true;
  for (std::uint64_t from = AlignUp(at + 1, kSectorBytes); from < end; from += kSectorBytes)
    if (zero_from(from)) return true;
  return false;
}

/// Returns whether a record after `from` has a SyncMark according to which a change later than
/// `last_change` was durable.
bool SaysSynced(Bytes bytes, std::uint64_t from, std::uint64_t last_change) {
  RecordFinder finder(bytes);
  for (std::uint64_t at = from; at + kLogHeaderBytes <= bytes.size();) {
    const auto end = finder.EndAt(at);
    if (!end) {
      ++at;
      continue;
    }
    const auto head = HeadOf(bytes.subspan(at, *end - at));
    if (head && head->synced_change > last_change) return true;
    at = *end;
  }
  return false;
}

/// Returns whether the bytes from `at` on, where a record should begin, may be the result of a
/// power cut. The cases are tested in this order:
///   1. too few bytes for a header, or only zeros: yes;
///   2. a record that is valid except for one bit: no, this is damage;
///   3. a record with a sector of zeros: yes, unless a later record proves that it was synced;
///   4. a valid record follows: no;
///   5. the last sector is zero and is not the sector of `at`: yes, the length reached the disk
///      before the bytes;
///   6. otherwise: only if the file ends inside the record.
bool IsTorn(Bytes bytes, std::uint64_t at, std::uint64_t last_change) {
  const Bytes rest = bytes.subspan(at);
  if (rest.size() < kLogHeaderBytes || AllZero(rest)) return true;
  if (IsFlipped(bytes, at)) return false;
  if (HasHole(bytes, at)) return !SaysSynced(bytes, at + 1, last_change);
  if (HoldsRecord(bytes, at + 1)) return false;
  const std::uint64_t length = LoadLittle<std::uint16_t>(rest.data() + kLengthAt);
  const std::uint64_t in_block = kLogBlockBytes - at % kLogBlockBytes;
  const std::uint64_t next_sector = (at / kSectorBytes + 1) * kSectorBytes;
  const bool zeros_follow = next_sector < bytes.size() && bytes.back() == std::byte{0} &&
                            AllZero(bytes.last(std::min<std::uint64_t>(
                                (bytes.size() - 1) % kSectorBytes + 1, bytes.size() - at)));
  if (zeros_follow) return true;
  const bool cut = kLogHeaderBytes + length > rest.size() && kLogHeaderBytes + length <= in_block;
  return cut && IsType(rest[kTypeAt]) && !IsRecord(bytes, at, rest.size() - kLogHeaderBytes);
}

}  // namespace

std::uint32_t MaskedLogCrc(std::uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8U; }

std::string SyncMark(std::uint64_t synced_change) {
  std::string mark(kMark);
  mark.resize(kMark.size() + sizeof(synced_change));
  StoreLittle(reinterpret_cast<std::byte*>(mark.data()) + kMark.size(), synced_change);
  return mark;
}

/// Advances from record to record while their checksums are correct, and notes the last change. At
/// the first invalid record, IsTorn distinguishes a torn tail from damage.
LogScan ScanLog(std::span<const std::byte> bytes, std::uint64_t begin, std::uint64_t last_change) {
  LogScan scan{.good_bytes = begin, .last_change = last_change};
  for (std::uint64_t at = SkipTrailer(begin); at < bytes.size();
       at = SkipTrailer(scan.good_bytes)) {
    const auto end = RecordEnd(bytes, at);
    if (!end) {
      scan.damaged = !IsTorn(bytes, at, scan.last_change);
      if (RHIZOME_MUTANT("torn log is damage")) scan.damaged = true;
      if (RHIZOME_MUTANT("damaged log is torn")) scan.damaged = false;
      return scan;
    }
    if (const auto head = HeadOf(bytes.subspan(at, *end - at)))
      scan.last_change = head->last_change;
    scan.good_bytes = *end;
  }
  return scan;
}

}  // namespace internal
}  // namespace rhizome
