#pragma once

#include <condition_variable>
#include <mutex>

#include "rhizome/export.h"

// Annotations that Clang checks at compile time (-Wthread-safety, preset `clang`). Other compilers
// ignore them.
#if defined(__clang__)
#define RHIZOME_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define RHIZOME_THREAD_ATTRIBUTE(x)
#endif
#define RHIZOME_GUARDED_BY(x) RHIZOME_THREAD_ATTRIBUTE(guarded_by(x))
#define RHIZOME_REQUIRES(...) RHIZOME_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define RHIZOME_EXCLUDES(...) RHIZOME_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

namespace RHIZOME_API rhizome {

/// std::mutex with the annotations that libstdc++ lacks.
class RHIZOME_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void Lock() RHIZOME_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void Unlock() RHIZOME_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a Mutex for the current scope.
class RHIZOME_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) RHIZOME_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() RHIZOME_THREAD_ATTRIBUTE(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for Mutex. Call Wait in a loop that tests the guarded state.
class CondVar {
 public:
  void Wait(Mutex& mutex) RHIZOME_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace rhizome
