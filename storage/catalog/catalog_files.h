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

namespace rhizome {

/// What a catalogue's MANIFEST and logs have said so far, which its tables and later logs must fit.
/// Threads: any.
class CatalogClaims {
 public:
  void Put(std::uint64_t table, TableClaim claim);

  /// Nothing of a table that was made since the MANIFEST was read.
  std::optional<TableClaim> Of(std::uint64_t table);

  void PutManifest(const ManifestEdits& edits);

  /// Notes which of RocksDB's changes a log holds so far. Returns what is wrong: an earlier log
  /// holds later changes; RocksDB would pass over some that are in no table; or what is in a table
  /// would hide some, although it must be earlier. Empty: nothing.
  std::string_view PutLog(std::uint64_t log, const LogBatches& batches);

 private:
  std::string_view Misfit(std::uint64_t log, const LogBatches& batches) const
      RHIZOME_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<std::uint64_t, TableClaim> tables_ RHIZOME_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::uint64_t> logs_ RHIZOME_GUARDED_BY(mutex_);  // last change
  std::map<std::uint32_t, FamilyClaim> families_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t first_log_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_change_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

/// The number in the name of a file of RocksDB's; nothing if it has none, ~0 if none of RocksDB's
/// files could have it.
std::optional<std::uint64_t> NumberOfRocksFile(const std::string& name);

/// A log (write-ahead log, MANIFEST) of `file_bytes` or more up to its last whole record: what a
/// power cut left behind that is no error and is not shown, whether the reader would pass over it
/// or not; damage, and what RocksDB would take without looking at it (LogBatches, ManifestEdits),
/// is an error that the reader cannot overlook. A log may grow while it is read (by another
/// process), and then shows more.
std::unique_ptr<rocksdb::FSSequentialFile> MakeCheckedLog(
    std::unique_ptr<rocksdb::FSSequentialFile> file, const std::string& path,
    std::uint64_t file_bytes, rocksdb::FileSystem& files, std::shared_ptr<CatalogClaims> claims);

/// A table, each block of which is checked when it is read (CatalogTable). Errors: Corruption.
rocksdb::IOStatus MakeCheckedTable(std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                   const std::string& path, std::uint64_t file_bytes,
                                   CatalogClaims& claims, rocksdb::IODebugContext* context);

}  // namespace rhizome
