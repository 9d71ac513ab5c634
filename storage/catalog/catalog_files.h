#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "rhizome/file_system.h"
#include "storage/base/mutex.h"
#include "storage/catalog/catalog_log.h"
#include "storage/catalog/catalog_manifest.h"
#include "storage/catalog/catalog_table.h"

namespace rhizome {
inline namespace internal {

/// The claims of a catalogue's MANIFEST and logs so far. Its tables and later logs must be
/// consistent with these claims. Threads: any.
class CatalogClaims {
 public:
  void Put(std::uint64_t table, TableClaim claim);

  /// Returns the claim for a table; nullopt if the table was created after the MANIFEST was read.
  std::optional<TableClaim> Of(std::uint64_t table);

  void PutManifest(const ManifestEdits& edits);

  /// Records the changes in a log so far. Returns an empty text or a description of the defect: an
  /// earlier log contains later changes; RocksDB would skip changes that are in no table; or
  /// changes in a table are later than changes of the log, and would hide them.
  std::string_view PutLog(std::uint64_t log, const LogBatches& batches);

 private:
  std::string_view Misfit(std::uint64_t log, const LogBatches& batches) const
      RHIZOME_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<std::uint64_t, TableClaim> tables_ RHIZOME_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::uint64_t> logs_ RHIZOME_GUARDED_BY(mutex_);  // last change of each
                                                                            // log
  std::map<std::uint32_t, FamilyClaim> families_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t first_log_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_change_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

/// Returns the number in the name of a RocksDB file; nullopt if the name contains none; ~0 if the
/// number is too large for any file of RocksDB.
std::optional<std::uint64_t> NumberOfRocksFile(const std::string& name);

/// Wraps a log (write-ahead log, MANIFEST) of at least `file_bytes` bytes. RocksDB sees it up to
/// its last complete record. Remains of a power cut after that record are hidden and are not an
/// error. Damage is an error, as are records that RocksDB would trust without checking (LogBatches,
/// ManifestEdits). If another process appends to the log, later reads show more.
std::unique_ptr<rocksdb::FSSequentialFile> MakeCheckedLog(
    std::unique_ptr<rocksdb::FSSequentialFile> file, const std::string& path,
    std::uint64_t file_bytes, rocksdb::FileSystem& files, std::shared_ptr<CatalogClaims> claims);

/// Wraps a table so that each block is checked when it is read (CatalogTable). Errors: Corruption;
/// IOError.
rocksdb::IOStatus MakeCheckedTable(std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                   const std::string& path, std::uint64_t file_bytes,
                                   CatalogClaims& claims, rocksdb::IODebugContext* context);

}  // namespace internal
}  // namespace rhizome
