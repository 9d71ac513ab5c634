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

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/logger.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store_id.h"

namespace rhizome::inline internal {

/// The commit point's content: which manifest is current.
struct CommitRecord {
  std::uint64_t generation = 0;
  std::uint64_t manifest_version = 0;
  std::uint64_t manifest_bytes = 0;
  Hash128 manifest_xxh3{};
  std::uint64_t sequence = 0;  ///< counts commits, those of the delta among them
  /// Commits up to this one are in the generation's files; later ones make up its delta.
  std::uint64_t base_sequence = 0;
};

/// A row of an array as a commit of the delta put it.
struct DeltaRow {
  std::uint64_t array_id = 0;
  std::int64_t vertex = 0;
  std::span<const std::byte> bytes;
};

/// One commit of the delta: what it says of the graph (index/delta_run.h), opaque here, and rows.
struct DeltaCommit {
  std::uint64_t sequence = 0;
  std::span<const std::byte> record;
  std::span<const DeltaRow> rows;
};

/// Memory of a catalogue, see StoreOptions; where its own warnings go (null: nowhere).
struct CatalogOptions {
  std::uint64_t cache_bytes = std::uint64_t{8} << 20;
  std::uint64_t write_bytes = std::uint64_t{16} << 20;
  std::shared_ptr<const Logger> logger = {};
};

/// RocksDB under catalog/, with the column families meta and delta. Only its source file,
/// catalog_env.cc and catalog_files.cc know RocksDB.
/// Threads: ReadDeltaRow, Commit, AppendDelta and DropDelta from many threads, beside one that
/// calls anything else but Close. In a forked child all fail with kInvalidArgument.
class Catalog {
 public:
  /// kCreate: makes a new database; kWrite: opens it; kRead: opens it as a secondary, which sees
  /// the commits up to now and never writes into the store. Errors: kCorruption; kNotFound;
  /// kIoError; kInvalidArgument, kCreate or kWrite in a fork of a process that had one open.
  enum class Mode : std::uint8_t { kCreate, kWrite, kRead };
  static Result<std::unique_ptr<Catalog>> Open(FileSystem& fs, const Path& path, Mode mode,
                                               const StoreId& id,
                                               const CatalogOptions& options = {});
  ~Catalog();

  /// Errors: kNotFound, nothing was ever committed; kCorruption.
  Result<CommitRecord> Current();

  /// One synced write: durable when it returns.
  Status Commit(const CommitRecord& record);

  /// One write of all of `commits`, together or not at all; durable when it returns if `sync`. Keys
  /// carry the sequence and are never overwritten. Throws std::bad_alloc only before it writes, as
  /// Commit does: after an error the disk may or may not hold the commits.
  Status AppendDelta(std::span<const DeltaCommit> commits, bool sync);

  /// Visits the records of the delta after commit `after`, in order of their sequence. Errors:
  /// kCorruption; the visitor's.
  Status ScanDelta(std::uint64_t after,
                   const std::function<Status(std::uint64_t sequence,
                                              std::span<const std::byte> record)>& visit);

  /// The last commit that the delta holds a record of; 0: none.
  Result<std::uint64_t> LastDelta();

  /// Reads a row that commit `sequence` put into `out`, which has its size. Errors: kCorruption, it
  /// is not there or not that row.
  Status ReadDeltaRow(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex,
                      std::span<std::byte> out);

  /// Removes what commits up to `last` put into the delta.
  Status DropDelta(std::uint64_t last);

  /// Visits everything that commits after `after` put into the delta, as it is stored, checked, in
  /// order of the keys: for copies of a store. Errors: kCorruption; the visitor's.
  Status ScanDeltaEntries(
      std::uint64_t after,
      const std::function<Status(std::string_view key, std::string_view value)>& visit);

  /// Puts such entries, which are checked again; durable with the next Commit.
  Status PutDeltaEntries(std::span<const std::pair<std::string, std::string>> entries);

  /// kRead: catches up with the writer's commits.
  Status CatchUp();

  /// Reads every block of the database. Errors: kCorruption.
  Status VerifyChecksums();

  /// Flushes, so that a closed store has no live write-ahead log, and closes.
  Status Close();

  /// Errors: kInvalidArgument, this is a fork of the process that opened it.
  Status CheckProcess() const;

 private:
  class Impl;
  explicit Catalog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The file without which a folder is no database of RocksDB's.
inline constexpr std::string_view kCatalogCurrent = "CURRENT";

/// Lets RocksDB collect what is left of the database at `path`, whose files it rewrites.
Status RepairDatabase(FileSystem& fs, const Path& path);

}  // namespace rhizome::inline internal
