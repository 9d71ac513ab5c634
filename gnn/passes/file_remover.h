#pragma once

#include <set>

#include "rhizome/file_system.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

/// Removes files on its own thread. If a file system reports free blocks to its disk (ext4 mounted
/// with discard), removing a file takes as long as writing it, and passes need not wait for that. A
/// file that cannot be removed is left in place. Threads: any. Ownership: borrows `fs`.
class FileRemover {
 public:
  explicit FileRemover(FileSystem& fs) : fs_(fs) {}

  /// Removes all files that are queued.
  ~FileRemover();

  /// Queues a file for removal. Removes it at once if no thread can be started.
  void Remove(const Path& path);

  /// Waits until all queued files are removed.
  void Wait();

  /// Waits until a file is removed, if it was queued. It may be created again afterwards.
  void WaitFor(const Path& path);

 private:
  void Work();

  FileSystem& fs_;
  Mutex mutex_;
  CondVar changed_;
  std::set<Path> waiting_ RHIZOME_GUARDED_BY(mutex_);  // including the one that is being removed
  bool ends_ RHIZOME_GUARDED_BY(mutex_) = false;
  bool works_ RHIZOME_GUARDED_BY(mutex_) = false;  // the thread was started
  Thread thread_;
};

}  // namespace internal
}  // namespace rhizome
