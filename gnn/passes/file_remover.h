#pragma once

#include <set>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/threads.h"

namespace rhizome::inline internal {

/// Removes files on a thread of its own. Where a file system tells its disk what is free (ext4,
/// mounted with discard), removing a file takes as long as writing it did, and passes need not wait
/// for that. A file that cannot be removed stays. Threads: any. Ownership: borrows `fs`.
class FileRemover {
 public:
  explicit FileRemover(FileSystem& fs) : fs_(fs) {}

  /// Removes all that is waiting.
  ~FileRemover();

  /// Lets a file be removed soon; at once if the system gives no thread for that.
  void Remove(const Path& path);

  /// Waits until all files that were given are removed.
  void Wait();

  /// Waits until a file is removed, if it was given: it may be made again then.
  void WaitFor(const Path& path);

 private:
  void Work();

  FileSystem& fs_;
  Mutex mutex_;
  CondVar changed_;
  std::set<Path> waiting_ RHIZOME_GUARDED_BY(mutex_);  // and the one that is being removed
  bool ends_ RHIZOME_GUARDED_BY(mutex_) = false;
  bool works_ RHIZOME_GUARDED_BY(mutex_) = false;  // the thread was started
  Thread thread_;
};

}  // namespace rhizome::inline internal
