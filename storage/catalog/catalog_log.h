#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rhizome {

/// How RocksDB lays out its logs, the write-ahead log and the MANIFEST: blocks of 32 KiB of records
/// [masked CRC-32C | length | type | payload]; what is left of a block, less than a header, is
/// zero.
inline constexpr std::uint64_t kLogBlockBytes = 32768;
inline constexpr std::uint64_t kLogHeaderBytes = 7;

/// What a part of such a log holds that begins at a block and goes to the end of the file.
struct LogScan {
  /// Whole records with the right checksum from the beginning on end here.
  std::uint64_t good_bytes = 0;

  /// RocksDB's number of the last change in them; 0: none.
  std::uint64_t last_change = 0;

  /// What follows is nothing that a power cut leaves, but damage.
  bool damaged = false;
};

/// Reads records up to the first that is not whole. A power cut leaves of what was not synced
///   - a beginning of the last record, and behind it, where the length came before the bytes, zeros
///     from some sector (512 bytes) on;
///   - where later sectors came before earlier ones, a record of which some sector is zero, and
///     records behind it. None of these says (SyncMark) that the lost one was synced before.
/// Everything else is damage; always, if the record is right but for one bit. `begin`: where to
/// start, the end of a record; `last_change`: in the records before. Touches no file.
LogScan ScanLog(std::span<const std::byte> bytes, std::uint64_t begin = 0,
                std::uint64_t last_change = 0);

/// Puts the records of a log, which it may hold in parts, together.
class LogRecords {
 public:
  /// Visits what ends in `bytes`, which begin at a block and are whole records from `begin` to
  /// their end. Where the parts of a record do not follow each other, or the visitor refuses one:
  /// its offset, and no more is to be read. Records of other sorts, which a catalogue has not, are
  /// refused.
  std::optional<std::uint64_t> Read(std::span<const std::byte> bytes, std::uint64_t begin,
                                    const std::function<bool(std::span<const std::byte>)>& visit);

 private:
  bool open_ = false;
  std::vector<std::byte> record_;
};

/// RocksDB's numbers of changes, from the first to the last; 0: none.
struct LoggedChanges {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// Follows RocksDB's write batches in a write-ahead log, and refuses what a catalogue's writer does
/// not write, be it behind a right checksum: puts and deletions of ranges, of keys that a catalogue
/// has, as many as are said to be there, each batch behind the one before. Source: RocksDB,
/// db/write_batch.cc.
class LogBatches {
 public:
  /// False if the next record is refused.
  bool Apply(std::span<const std::byte> record);

  const LoggedChanges& changes() const { return changes_; }

  /// Those of a column family, by RocksDB's number.
  LoggedChanges ChangesOf(std::uint32_t family) const;

 private:
  LoggedChanges changes_;
  std::map<std::uint32_t, LoggedChanges> families_;
};

/// What a write to the catalogue begins with, in the log only (WriteBatch::PutLogData): changes up
/// to this number were durable when it was made. 0: none since the log began.
std::string SyncMark(std::uint64_t synced_change);

/// A CRC-32C as RocksDB stores it.
std::uint32_t MaskedLogCrc(std::uint32_t crc);

}  // namespace rhizome
