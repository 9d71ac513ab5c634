#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "rhizome/types.h"
#include "storage/base/hash.h"
#include "storage/base/logger.h"

namespace rhizome {
inline namespace internal {

/// The content of the commit point: it identifies the current manifest.
struct CommitRecord {
  std::uint64_t generation = 0;
  std::uint64_t manifest_version = 0;
  std::uint64_t manifest_bytes = 0;
  Hash128 manifest_xxh3{};
  std::uint64_t sequence = 0;  ///< number of the last commit, including commits in the delta
  /// Commits up to this one are in the generation's files; later commits form the delta.
  std::uint64_t base_sequence = 0;
  HistoryState base_state = {};  ///< after commit base_sequence; unknown in version 1
};

/// A row of an array that is written by a commit of the delta.
struct DeltaRow {
  std::uint64_t array_id = 0;
  std::int64_t vertex = 0;
  std::span<const std::byte> bytes;
};

/// A commit of the delta: a record of graph changes (delta_run.h; this layer reads only its head,
/// see delta_head.h) and rows. Ownership: borrows both.
struct DeltaCommit {
  std::uint64_t sequence = 0;
  std::span<const std::byte> record;
  std::span<const DeltaRow> rows;
};

/// Memory limits of a catalogue (see StoreOptions), and the log for RocksDB's warnings (null:
/// none).
struct CatalogOptions {
  std::uint64_t cache_bytes = std::uint64_t{8} << 20;
  std::uint64_t write_bytes = std::uint64_t{16} << 20;
  std::shared_ptr<const Logger> logger = {};
};

/// The database under catalog/, a RocksDB database with the column families meta and delta. It
/// contains the commit record and the delta; its write-ahead log makes commits durable.
/// Threads: ReadDeltaRow, Commit, AppendDelta and DropDelta may be called from many threads,
/// concurrently with one thread that calls the others; Close must not overlap any call. In a forked
/// child every call fails with kInvalidArgument.
class Catalog {
 public:
  /// kCreate creates a database; kWrite opens one for writing; kRead opens it as a secondary, which
  /// sees the commits so far and never writes into the store. Errors: kCorruption; kNotFound;
  /// kBusy, another process is writing; kIoError; kOutOfMemory; kInvalidArgument, kCreate or kWrite
  /// in a fork of a process that had a catalogue open.
  enum class Mode : std::uint8_t { kCreate, kWrite, kRead };
  static Result<std::unique_ptr<Catalog>> Open(FileSystem& fs, const Path& path, Mode mode,
                                               const StoreId& id,
                                               const CatalogOptions& options = {});
  ~Catalog();

  /// Returns the commit record. Errors: kNotFound, nothing was ever committed; kCorruption.
  Result<CommitRecord> Current();

  /// Replaces the commit record by one synced write: it is durable when this function returns.
  Status Commit(const CommitRecord& record);

  /// Writes all of `commits` atomically; if `sync` is true, they are durable when this function
  /// returns. Keys contain the sequence number and are never overwritten. After an error the
  /// commits may or may not be on disk. Like Commit, it throws std::bad_alloc only before it
  /// writes.
  Status AppendDelta(std::span<const DeltaCommit> commits, bool sync);

  /// Visits the records of the delta after commit `after`, in order of their sequence numbers.
  /// Errors: kCorruption; errors of the visitor.
  Status ScanDelta(std::uint64_t after,
                   const std::function<Status(std::uint64_t sequence,
                                              std::span<const std::byte> record)>& visit);

  /// Returns the state after the last commit of the delta that is not above `last`, without reading
  /// other records; the state after commit `base` is `base_state`. Records of version 1 contain no
  /// state: it is then computed from all records and rows after `base`, and the result is always
  /// the same.
  /// Errors: kCorruption.
  Result<HistoryState> StateAfter(std::uint64_t last, std::uint64_t base,
                                  const HistoryState& base_state);

  /// Returns the number of the last commit that has entries in the delta; 0: none.
  Result<std::uint64_t> LastDelta();

  /// Reads a row that commit `sequence` wrote into `out`, which must have the row's size.
  /// Errors: kCorruption, the row is missing, damaged or of another size.
  Status ReadDeltaRow(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex,
                      std::span<std::byte> out);

  /// Removes the records and rows of all commits up to `last` from the delta, without a sync.
  Status DropDelta(std::uint64_t last);

  /// Visits the stored entries (records and rows) of commits after `after`, in order of their keys,
  /// and checks each entry. For copies of a store. Errors: kCorruption; errors of the visitor.
  Status ScanDeltaEntries(
      std::uint64_t after,
      const std::function<Status(std::string_view key, std::string_view value)>& visit);

  /// Writes such entries, which are checked again. They are durable after the next Commit.
  Status PutDeltaEntries(std::span<const std::pair<std::string, std::string>> entries);

  /// Moves a reader (kRead) to the latest commit of the writer.
  Status CatchUp();

  /// Reads every block of the database. Errors: kCorruption.
  Status VerifyChecksums();

  /// Closes the catalogue. A writer flushes first, so that a closed store has no live write-ahead
  /// log, and seals the catalogue. The destructor does the same and drops errors.
  Status Close();

  /// Errors: kInvalidArgument, this process is a fork of the one that opened the catalogue.
  Status CheckProcess() const;

 private:
  class Impl;
  explicit Catalog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// RocksDB's file that names the current MANIFEST; every database has one.
inline constexpr std::string_view kCatalogCurrent = "CURRENT";

/// Runs RocksDB's repair on the database at `path`, in place: it rewrites the files with the data
/// that is still readable. Errors: kCorruption; errors of the disk.
Status RepairDatabase(FileSystem& fs, const Path& path);

}  // namespace internal
}  // namespace rhizome
