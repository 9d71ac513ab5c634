#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>

#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"
#include "storage/catalog/catalog_threads.h"

namespace rhizome {
inline namespace internal {

/// The first fault that RocksDB encountered in the files of a catalogue. A fault is an error that
/// does not concern the stored bytes: no descriptor, no permission, a failed read or write. RocksDB
/// ignores some faults: a secondary then shows an earlier state, and a repair leaves out files that
/// it could not open. Threads: any.
class CatalogFault {
 public:
  /// Records `status` if it is the first fault.
  void Note(const std::string& file, const rocksdb::Status& status) RHIZOME_EXCLUDES(mutex_);

  /// Returns the fault: kIoError, kPermissionDenied, kOutOfSpace or kOutOfMemory; OK if there was
  /// none.
  Status status() const RHIZOME_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Status status_ RHIZOME_GUARDED_BY(mutex_);
};

/// Whether a database may still change its files. A database in which an exception was thrown can
/// be neither used nor closed: it may hold its own mutex, and its queue of writers may refer to a
/// writer that no longer exists. So it is abandoned together with its background threads, and Shut
/// prevents it from touching the files, which then belong to the next opener of the catalogue.
/// Threads: any.
class CatalogGate {
 public:
  /// Makes every later change of a file fail, and releases the database's file lock.
  void Shut() noexcept RHIZOME_EXCLUDES(mutex_);
  bool shut() const { return shut_.load(); }

  /// Record that the database acquired or released its lock; called by the file system.
  void Took(rocksdb::FileLock* lock, std::shared_ptr<rocksdb::FileSystem> files)
      RHIZOME_EXCLUDES(mutex_);
  void Gave(const rocksdb::FileLock* lock) RHIZOME_EXCLUDES(mutex_);

 private:
  std::atomic<bool> shut_{false};
  Mutex mutex_;
  rocksdb::FileLock* lock_ RHIZOME_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<rocksdb::FileSystem> files_ RHIZOME_GUARDED_BY(mutex_);
};

/// Translates a RocksDB error that is a fault, by its code and message; kIoError if no other code
/// fits. `where` is put at the front of the message.
Status TranslateFault(const rocksdb::Status& status, const std::string& where);

/// Creates an environment for RocksDB on top of `base` that survives more power cuts than RocksDB
/// itself:
///   - a file is renamed to CURRENT only after all names in the folder are durable, including the
///     name of the MANIFEST to which the new CURRENT refers. RocksDB syncs the folder only
///     afterwards: a disk that persists names out of order would leave a catalogue that cannot be
///     opened;
///   - the last record of a log (write-ahead log, MANIFEST) counts as the end of the log if it was
///     not synced and its length reached the disk before its bytes. RocksDB would refuse the
///     catalogue.
/// It also reports damage in a log that RocksDB would mistake for such an end, and refuses
/// everything that RocksDB would not write with a catalogue's options (catalog_files.h): foreign
/// bytes with correct checksums could end the process, or make RocksDB read outside its buffers.
/// Faults are recorded in `fault`; RocksDB's background work runs on `threads`, which the result
/// keeps alive; `gate` can stop all changes of files. Ownership: `base` and the result must outlive
/// the databases that use them.
std::unique_ptr<rocksdb::Env> MakeCatalogEnv(rocksdb::Env& base,
                                             std::shared_ptr<CatalogFault> fault,
                                             std::shared_ptr<CatalogThreads> threads,
                                             std::shared_ptr<CatalogGate> gate);

/// Creates such an environment for RocksDB's repair. Once a write has failed, all later writes
/// fail, and `fault` contains the first error. RocksDB itself continues after some failed writes,
/// and then ends the process by an assertion or reports success.
std::unique_ptr<rocksdb::Env> MakeRepairEnv(rocksdb::Env& base,
                                            std::shared_ptr<CatalogFault> fault);

}  // namespace internal
}  // namespace rhizome
