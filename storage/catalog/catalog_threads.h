#pragma once

#include <rocksdb/env.h>

#include <array>
#include <cstddef>
#include <deque>

#include "rhizome/storage/mutex.h"
#include "rhizome/storage/status.h"
#include "rhizome/storage/threads.h"

namespace rhizome::inline internal {

/// The threads on which RocksDB writes and merges the tables of one catalogue: one for tables that
/// are written out of memory, one for all else. RocksDB's own are of the process, and it waits for
/// them while the process ends, also in a forked child, where they are not.
/// Threads: any, but Start. Ownership: whoever destroys it has closed the database before; in a
/// forked child it is left as it is.
class CatalogThreads {
 public:
  using Work = void (*)(void* argument);

  CatalogThreads() = default;
  ~CatalogThreads();
  CatalogThreads(const CatalogThreads&) = delete;
  CatalogThreads& operator=(const CatalogThreads&) = delete;

  /// Before a database is opened that schedules work; readers do not. Errors: kOutOfMemory, the
  /// system gives no threads.
  Status Start();

  void Schedule(rocksdb::Env::Priority priority, Work work, void* argument, void* tag,
                Work unscheduled);

  /// Takes back what was scheduled with `tag` and has not begun; how much that was.
  int Unschedule(rocksdb::Env::Priority priority, void* tag);

  std::size_t QueueLength(rocksdb::Env::Priority priority) const;

  /// How many threads serve a priority.
  static int CountOf(rocksdb::Env::Priority priority);

 private:
  struct Job {
    Work work = nullptr;
    void* argument = nullptr;
    void* tag = nullptr;
    Work unscheduled = nullptr;
  };

  /// A queue, and the thread that works it off.
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
    Thread thread_;  // last: it uses all others
  };

  static std::size_t LaneOf(rocksdb::Env::Priority priority);

  std::array<Lane, 2> lanes_;
};

}  // namespace rhizome::inline internal
