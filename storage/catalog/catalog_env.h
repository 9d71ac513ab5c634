#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>

#include "rhizome/storage/catalog_threads.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/status.h"

namespace rhizome::inline internal {

/// The first fault that RocksDB met in the files of a catalogue. A fault is an error that says
/// nothing about their bytes: no descriptor, no permission, a read or write that failed. RocksDB
/// goes on after some of them: a secondary shows an earlier state, a repair leaves out files that
/// it could not open. Threads: any.
class CatalogFault {
 public:
  /// Keeps `status` if it is the first fault.
  void Note(const std::string& file, const rocksdb::Status& status) RHIZOME_EXCLUDES(mutex_);

  /// Returns the fault: kIoError, kPermissionDenied, kOutOfSpace or kOutOfMemory; OK if there was
  /// none.
  Status status() const RHIZOME_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Status status_ RHIZOME_GUARDED_BY(mutex_);
};

/// Whether a database may still change its files. A database in which an exception was thrown can
/// be neither used nor closed: it may hold its own mutex, and its queue of writers may name one
/// that is gone. So it is left behind, with its background threads, and Shut keeps it from touching
/// the files that the next one to open the catalogue owns. Threads: any.
class CatalogGate {
 public:
  /// Makes every later change of a file fail, and releases the database's file lock.
  void Shut() noexcept RHIZOME_EXCLUDES(mutex_);
  bool shut() const { return shut_.load(); }

  /// Keep the lock that the database holds; the file system calls them.
  void Took(rocksdb::FileLock* lock, std::shared_ptr<rocksdb::FileSystem> files)
      RHIZOME_EXCLUDES(mutex_);
  void Gave(const rocksdb::FileLock* lock) RHIZOME_EXCLUDES(mutex_);

 private:
  std::atomic<bool> shut_{false};
  Mutex mutex_;
  rocksdb::FileLock* lock_ RHIZOME_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<rocksdb::FileSystem> files_ RHIZOME_GUARDED_BY(mutex_);
};

/// Translates an error of RocksDB that is a fault, by its code and message; kIoError if no other
/// code fits. `where` comes first in the message.
Status TranslateFault(const rocksdb::Status& status, const std::string& where);

/// Makes an environment for RocksDB on top of `base` that survives more power cuts than RocksDB
/// does:
///   - a file is renamed to CURRENT only when all names in the folder are durable, that of the
///     MANIFEST which the new CURRENT names included. RocksDB syncs the folder only afterwards: a
///     disk that keeps names in another order than they were made would leave a catalogue that
///     cannot be opened;
///   - a last record of a log (write-ahead log, MANIFEST) that was not synced, and whose length
///     reached the disk before its bytes, counts as the end of the log. RocksDB would refuse the
///     catalogue.
/// It also reports damage in a log that RocksDB would take for such an end, and refuses everything
/// that RocksDB would not write with a catalogue's options (catalog_files.h): foreign bytes behind
/// correct checksums could end the process, or make RocksDB read outside of its buffers. Faults go
/// into `fault`; RocksDB's background work runs on `threads`, which the result keeps alive, and
/// `gate` can end its changes of files. Ownership: `base` and the result must outlive the databases
/// that use them.
std::unique_ptr<rocksdb::Env> MakeCatalogEnv(rocksdb::Env& base,
                                             std::shared_ptr<CatalogFault> fault,
                                             std::shared_ptr<CatalogThreads> threads,
                                             std::shared_ptr<CatalogGate> gate);

/// Makes such an environment for RocksDB's repair. Once a write has failed, all later ones fail,
/// and `fault` holds the first error. RocksDB alone goes on after some failed writes, and then ends
/// the process in an assertion or reports success.
std::unique_ptr<rocksdb::Env> MakeRepairEnv(rocksdb::Env& base,
                                            std::shared_ptr<CatalogFault> fault);

}  // namespace rhizome::inline internal
