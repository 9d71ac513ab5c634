#include "gnn/passes/file_remover.h"

namespace rhizome {
inline namespace internal {

FileRemover::~FileRemover() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  static_cast<void>(thread_.Join());
}

void FileRemover::Remove(const Path& path) {
  {
    const MutexLock lock(mutex_);
    if (!works_) {
      works_ = thread_
                   .Start([this] {
                     Work();
                     return Status::Ok();
                   })
                   .ok();
    }
    if (works_) {
      waiting_.insert(path);
      changed_.NotifyAll();
      return;
    }
  }
  static_cast<void>(fs_.RemoveFile(path));
}

void FileRemover::Work() {
  while (true) {
    Path path;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !ends_) changed_.Wait(mutex_);
      if (waiting_.empty()) return;
      path = *waiting_.begin();
    }
    static_cast<void>(fs_.RemoveFile(path));
    const MutexLock lock(mutex_);
    waiting_.erase(path);
    changed_.NotifyAll();
  }
}

void FileRemover::Wait() {
  const MutexLock lock(mutex_);
  while (!waiting_.empty()) changed_.Wait(mutex_);
}

void FileRemover::WaitFor(const Path& path) {
  const MutexLock lock(mutex_);
  while (waiting_.contains(path)) changed_.Wait(mutex_);
}

}  // namespace internal
}  // namespace rhizome
