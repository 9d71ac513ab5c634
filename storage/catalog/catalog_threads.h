#pragma once

#include <rocksdb/env.h>

#include <array>
#include <cstddef>
#include <deque>

#include "rhizome/status.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

/// The threads for RocksDB's background work on one catalogue: one flushes memtables, the other
/// does everything else, such as compactions. RocksDB's own pool belongs to the process, and
/// RocksDB waits for it at the end of the process, even in a forked child, which has no such
/// threads.
/// Threads: any, except for Start. Ownership: close the database before destroying this object; a
/// forked child must not destroy it.
class CatalogThreads {
 public:
  using Work = void (*)(void* argument);

  CatalogThreads() = default;
  ~CatalogThreads();
  CatalogThreads(const CatalogThreads&) = delete;
  CatalogThreads& operator=(const CatalogThreads&) = delete;

  /// Starts the threads. Must be called before a database is opened for writing; readers schedule
  /// no work.
  /// Errors: kOutOfMemory, the system grants no threads.
  Status Start();

  void Schedule(rocksdb::Env::Priority priority, Work work, void* argument, void* tag,
                Work unscheduled);

  /// Removes the jobs with `tag` that have not started, calls their `unscheduled`, and returns
  /// their number.
  int Unschedule(rocksdb::Env::Priority priority, void* tag);

  std::size_t QueueLength(rocksdb::Env::Priority priority) const;

  /// Returns the number of threads that serve a priority.
  static int CountOf(rocksdb::Env::Priority priority);

 private:
  struct Job {
    Work work = nullptr;
    void* argument = nullptr;
    void* tag = nullptr;
    Work unscheduled = nullptr;
  };

  /// A queue of jobs and the thread that runs them.
  class Lane {
   public:
    ~Lane();
    Status Start();
    void Add(const Job& job) RHIZOME_EXCLUDES(mutex_);
    int Remove(void* tag) RHIZOME_EXCLUDES(mutex_);
    std::size_t length() const RHIZOME_EXCLUDES(mutex_);

   private:
    Status WorkOff() RHIZOME_EXCLUDES(mutex_);

    mutable Mutex mutex_;
    CondVar changed_;
    std::deque<Job> jobs_ RHIZOME_GUARDED_BY(mutex_);
    bool ends_ RHIZOME_GUARDED_BY(mutex_) = false;
    Thread thread_;  // last, because it uses all other members
  };

  static std::size_t LaneOf(rocksdb::Env::Priority priority);

  std::array<Lane, 2> lanes_;
};

}  // namespace internal
}  // namespace rhizome
