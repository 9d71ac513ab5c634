#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

#include "rhizome/storage/catalog_threads.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/status.h"

namespace rhizome::inline internal {

/// The first fault that RocksDB met in the files of a catalogue: an error that says nothing of
/// their bytes (no descriptor, no permission, a read or write that failed). RocksDB goes on after
/// some: a secondary shows an earlier state, a repair leaves out what it could not open. Threads:
/// any.
class CatalogFault {
 public:
  void Note(const std::string& file, const rocksdb::Status& status) RHIZOME_EXCLUDES(mutex_);

  /// OK: there was none. Else kIoError, kPermissionDenied, kOutOfSpace or kOutOfMemory.
  Status status() const RHIZOME_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Status status_ RHIZOME_GUARDED_BY(mutex_);
};

/// The code that RocksDB's words stand for. Errors: kIoError where there is no better one.
Status TranslateFault(const rocksdb::Status& status, const std::string& where);

/// RocksDB's environment `base`, but that it bears power cuts which RocksDB does not:
///   - a file is moved over CURRENT only when all names in the folder are durable, that of the
///     MANIFEST which the new CURRENT names among them. RocksDB syncs the folder once, afterwards:
///     a disk that brings names back in another order than they were given would leave a catalogue
///     that cannot be opened;
///   - a last record of a log (write-ahead log, MANIFEST) that was not synced and whose length came
///     before its bytes is the end of the log. RocksDB would refuse the catalogue;
/// that it overlooks no damage of a log which RocksDB takes for such an end, and that it shows
/// RocksDB nothing but what a catalogue's options let it write (catalog_files.h): what others put
/// behind right checksums would end the process, or be read where there is nothing. Files that
/// cannot be opened go into `fault`; what RocksDB does behind the scenes, `threads` do. Ownership:
/// `base` and the result must outlive the databases that use them.
std::unique_ptr<rocksdb::Env> MakeCatalogEnv(rocksdb::Env& base,
                                             std::shared_ptr<CatalogFault> fault,
                                             std::shared_ptr<CatalogThreads> threads);

/// The same for RocksDB's repair of a copy: once a write failed all later ones do, and `fault` has
/// it. RocksDB goes on after some that failed, and comes upon an assertion that ends the process,
/// or says that all is well.
std::unique_ptr<rocksdb::Env> MakeRepairEnv(rocksdb::Env& base,
                                            std::shared_ptr<CatalogFault> fault);

}  // namespace rhizome::inline internal
