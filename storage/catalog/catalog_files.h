#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "rhizome/storage/catalog_log.h"
#include "rhizome/storage/catalog_manifest.h"
#include "rhizome/storage/catalog_table.h"
#include "rhizome/storage/mutex.h"

namespace rhizome::inline internal {

/// The claims that a catalogue's MANIFEST and logs have made so far. Its tables and later logs must
/// fit them. Threads: any.
class CatalogClaims {
 public:
  void Put(std::uint64_t table, TableClaim claim);

  /// Returns the claim for a table, or nothing if the table was made since the MANIFEST was read.
  std::optional<TableClaim> Of(std::uint64_t table);

  void PutManifest(const ManifestEdits& edits);

  /// Notes the changes that a log holds so far. Returns an empty text, or the defect: an earlier
  /// log holds later changes; RocksDB would pass over changes that are in no table; or changes of a
  /// table are later than changes of the log, which they would hide.
  std::string_view PutLog(std::uint64_t log, const LogBatches& batches);

 private:
  std::string_view Misfit(std::uint64_t log, const LogBatches& batches) const
      RHIZOME_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<std::uint64_t, TableClaim> tables_ RHIZOME_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::uint64_t> logs_ RHIZOME_GUARDED_BY(mutex_);  // last change of each
  std::map<std::uint32_t, FamilyClaim> families_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t first_log_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_change_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

/// Returns the number in the name of one of RocksDB's files; nothing if the name has none, ~0 if no
/// file of RocksDB's could have such a number.
std::optional<std::uint64_t> NumberOfRocksFile(const std::string& name);

/// Wraps a log (write-ahead log, MANIFEST) of at least `file_bytes` bytes. RocksDB sees it up to
/// its last whole record. Remains of a power cut behind that are not shown and are no error. Damage
/// is an error, and so are records that RocksDB would believe without checking them (LogBatches,
/// ManifestEdits). A log that another process appends to meanwhile shows more later.
std::unique_ptr<rocksdb::FSSequentialFile> MakeCheckedLog(
    std::unique_ptr<rocksdb::FSSequentialFile> file, const std::string& path,
    std::uint64_t file_bytes, rocksdb::FileSystem& files, std::shared_ptr<CatalogClaims> claims);

/// Wraps a table so that each of its blocks is checked when it is read (CatalogTable). Errors:
/// Corruption; IOError.
rocksdb::IOStatus MakeCheckedTable(std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                   const std::string& path, std::uint64_t file_bytes,
                                   CatalogClaims& claims, rocksdb::IODebugContext* context);

}  // namespace rhizome::inline internal
