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
inline namespace internal {

/// The layout of RocksDB's logs, the write-ahead log and the MANIFEST: blocks of 32 KiB contain
/// records [masked CRC-32C | length | type | payload]; if the rest of a block is too short for a
/// header, it is zero. Source: RocksDB, db/log_format.h.
inline constexpr std::uint64_t kLogBlockBytes = 32768;
inline constexpr std::uint64_t kLogHeaderBytes = 7;

/// The result of scanning a log from the beginning of a block to the end of the file.
struct LogScan {
  /// End of the contiguous records that are complete and have correct checksums.
  std::uint64_t good_bytes = 0;

  /// RocksDB's number of the last change in these records; 0: none.
  std::uint64_t last_change = 0;

  /// True if the bytes after these records cannot be the result of a power cut, and so are damaged.
  bool damaged = false;
};

/// Reads records up to the first incomplete one. A power cut leaves unsynced bytes in one of these
/// forms:
///   - a prefix of the last record, followed by zeros from some sector (512 bytes) on if the length
///     of the file reached the disk before the bytes;
///   - a record with a sector of zeros, and further records after it, if later sectors reached the
///     disk before earlier ones. None of the later records says (SyncMark) that the lost record was
///     synced.
/// Everything else is damage, in particular a record that is valid except for one bit. The scan
/// starts at `begin`, the end of a record; `last_change` is the last change of the preceding
/// records. Accesses no file.
LogScan ScanLog(std::span<const std::byte> bytes, std::uint64_t begin = 0,
                std::uint64_t last_change = 0);

/// Joins the parts of a log's records.
class LogRecords {
 public:
  /// Visits the records that end in `bytes`. `bytes` must begin at the beginning of a block and
  /// contain complete physical records from `begin` to its end. Returns nullopt, or the offset of a
  /// record whose parts do not follow each other, whose type does not occur in a catalogue, or
  /// which the visitor refused; then Read must not be called again.
  std::optional<std::uint64_t> Read(std::span<const std::byte> bytes, std::uint64_t begin,
                                    const std::function<bool(std::span<const std::byte>)>& visit);

 private:
  bool open_ = false;
  std::vector<std::byte> record_;
};

/// A range of RocksDB's change numbers, both ends included; 0: none.
struct LoggedChanges {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// Follows RocksDB's write batches in a write-ahead log, and refuses batches that a catalogue's
/// writer does not write, even if the checksum is correct. It accepts puts and range deletions of a
/// catalogue's keys, in the number that the batch states, in batches whose changes are consecutive.
/// Source: RocksDB, db/write_batch.cc.
class LogBatches {
 public:
  /// Processes the next record; returns false if the record is refused.
  bool Apply(std::span<const std::byte> record);

  const LoggedChanges& changes() const { return changes_; }

  /// Returns the changes of a column family, given RocksDB's number of the family.
  LoggedChanges ChangesOf(std::uint32_t family) const;

 private:
  LoggedChanges changes_;
  std::map<std::uint32_t, LoggedChanges> families_;
};

/// Creates the mark with which every write to the catalogue begins; it is stored only in the log
/// (WriteBatch::PutLogData). It states that changes up to `synced_change` were durable when the
/// write was made; 0: none known to this writer.
std::string SyncMark(std::uint64_t synced_change);

/// Masks a CRC-32C as RocksDB does before storing it (util/crc32c.h).
std::uint32_t MaskedLogCrc(std::uint32_t crc);

}  // namespace internal
}  // namespace rhizome
