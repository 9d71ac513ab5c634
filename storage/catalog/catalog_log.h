#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rhizome::inline internal {

/// The layout of RocksDB's logs, the write-ahead log and the MANIFEST: blocks of 32 KiB hold
/// records [masked CRC-32C | length | type | payload]; a rest of a block that is too short for a
/// header is zero. Source: RocksDB, db/log_format.h.
inline constexpr std::uint64_t kLogBlockBytes = 32768;
inline constexpr std::uint64_t kLogHeaderBytes = 7;

/// The result of scanning a log from the beginning of a block to the end of the file.
struct LogScan {
  /// The end of the records that are whole and have the right checksum, without a gap.
  std::uint64_t good_bytes = 0;

  /// RocksDB's number of the last change in these records; 0: none.
  std::uint64_t last_change = 0;

  /// True if the bytes behind them cannot come from a power cut, and so are damage.
  bool damaged = false;
};

/// Reads records up to the first that is not whole. Of bytes that were not synced, a power cut
/// leaves
///   - a beginning of the last record, followed by zeros from some sector (512 bytes) on if the
///     length of the file reached the disk before the bytes;
///   - a record with a sector of zeros, and records behind it, if later sectors reached the disk
///     before earlier ones. None of the later records says (SyncMark) that the lost one was synced.
/// Everything else is damage, and always a record that is right but for one bit. The scan starts at
/// `begin`, the end of a record; `last_change` is the last change of the records before. Touches no
/// file.
LogScan ScanLog(std::span<const std::byte> bytes, std::uint64_t begin = 0,
                std::uint64_t last_change = 0);

/// Joins the parts of a log's records.
class LogRecords {
 public:
  /// Visits the records that end in `bytes`, which begin at a block's beginning and hold whole
  /// physical records from `begin` to their end. Returns nothing, or the offset of a record whose
  /// parts do not follow each other, whose type a catalogue does not have, or which the visitor
  /// refused; then Read must not be called again.
  std::optional<std::uint64_t> Read(std::span<const std::byte> bytes, std::uint64_t begin,
                                    const std::function<bool(std::span<const std::byte>)>& visit);

 private:
  bool open_ = false;
  std::vector<std::byte> record_;
};

/// A range of RocksDB's numbers of changes, both ends included; 0: none.
struct LoggedChanges {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// Follows RocksDB's write batches in a write-ahead log, and refuses batches that a catalogue's
/// writer does not write, even with a right checksum. It accepts puts and range deletions of a
/// catalogue's keys, as many as the batch's count says, in batches whose changes follow one
/// another.
/// Source: RocksDB, db/write_batch.cc.
class LogBatches {
 public:
  /// Takes the next record; false: it is refused.
  bool Apply(std::span<const std::byte> record);

  const LoggedChanges& changes() const { return changes_; }

  /// The changes of a column family, by RocksDB's number of the family.
  LoggedChanges ChangesOf(std::uint32_t family) const;

 private:
  LoggedChanges changes_;
  std::map<std::uint32_t, LoggedChanges> families_;
};

/// Makes the mark with which every write to the catalogue begins, in the log only
/// (WriteBatch::PutLogData). It says that changes up to `synced_change` were durable when the write
/// was made; 0: none that this writer knows of.
std::string SyncMark(std::uint64_t synced_change);

/// Masks a CRC-32C as RocksDB does before it stores it (util/crc32c.h).
std::uint32_t MaskedLogCrc(std::uint32_t crc);

}  // namespace rhizome::inline internal
