#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>

#include "index/base/background.h"
#include "rhizome/export.h"
#include "storage/base/threads.h"

#if !defined(__SANITIZE_THREAD__)
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#endif

namespace rhizome {
inline namespace RHIZOME_API internal {

// Loops over independent pieces of work, on the threads of the current TaskArena. They hide the two
// sources of threads. oneTBB is the usual one. Plain threads are used in builds with the thread
// sanitizer, which cannot see how oneTBB's threads synchronise, and for background work: oneTBB
// keeps its threads until the process ends, and threads created in the background would remain at
// low priority. In both cases the loop rethrows exceptions of the pieces.

namespace plain {

inline std::size_t Threads(std::size_t most) {
#if defined(__SANITIZE_THREAD__)
  constexpr unsigned kLeast = 4;  // gives the sanitizer several threads on any machine
#else
  constexpr unsigned kLeast = 1;
#endif
  return std::min<std::size_t>(most, std::max(std::thread::hardware_concurrency(), kLeast));
}

/// Keeps the first exception that any of several threads raises, so that the waiting thread can
/// rethrow it.
class FirstException {
 public:
  /// Must be called within a catch block.
  void Note() noexcept {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) first_ = std::current_exception();
  }
  void Rethrow() const {
    if (first_ != nullptr) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

template <typename Body>
void ParallelFor(std::size_t count, const Body& body) {
  std::atomic<std::size_t> next = 0;
  FirstException failed;
  static_cast<void>(RunOnThreads(Threads(count), [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      failed.Note();
      next = count;
    }
    return Status::Ok();
  }));
  failed.Rethrow();
}

template <typename Work, typename Finish>
void ParallelInOrder(std::size_t count, std::size_t in_flight, const Work& work,
                     const Finish& finish) {
  std::mutex mutex;
  std::condition_variable turn;
  std::size_t next = 0;
  std::size_t finished = 0;
  bool stopped = false;
  FirstException failed;
  const auto run = [&] {
    std::unique_lock lock(mutex);
    while (true) {
      turn.wait(lock, [&] { return stopped || next == count || next < finished + in_flight; });
      if (stopped || next == count) return;
      const std::size_t mine = next++;
      lock.unlock();
      work(mine);
      lock.lock();
      turn.wait(lock, [&] { return stopped || finished == mine; });
      if (stopped) return;
      lock.unlock();
      const bool go_on = finish(mine);
      lock.lock();
      finished = mine + 1;
      stopped = !go_on;
      turn.notify_all();
    }
  };
  static_cast<void>(RunOnThreads(Threads(in_flight), [&] {
    try {
      run();
    } catch (...) {
      failed.Note();
      const std::lock_guard lock(mutex);
      stopped = true;
      turn.notify_all();
    }
    return Status::Ok();
  }));
  failed.Rethrow();
}

}  // namespace plain

#if defined(__SANITIZE_THREAD__)

class TaskArena {
 public:
  explicit TaskArena(int) {}
  template <typename Body>
  void execute(const Body& body) {
    body();
  }
};

using plain::ParallelFor;
using plain::ParallelInOrder;

template <typename Iterator, typename Before>
void ParallelSort(Iterator begin, Iterator end, const Before& before) {
  std::sort(begin, end, before);
}

#else

/// Limits the threads of the loops that run within execute(body). The limit is at most the number
/// of processors: more would not help, and oneTBB warns about it on stderr. No result depends on
/// the number of threads.
class TaskArena {
 public:
  explicit TaskArena(int threads)
      : arena_(std::clamp(threads, 1, tbb::info::default_concurrency())) {}
  template <typename Body>
  void execute(const Body& body) {
    if (NeedsOwnThreads()) {
      body();
    } else {
      arena_.execute(body);
    }
  }

 private:
  tbb::task_arena arena_;
};

/// Calls body(i) once for each i below `count`, concurrently and in any order. Returns when all
/// calls are done.
template <typename Body>
void ParallelFor(std::size_t count, const Body& body) {
  if (NeedsOwnThreads()) return plain::ParallelFor(count, body);
  tbb::parallel_for(std::size_t{0}, count, body);
}

/// Calls work(i) like ParallelFor, and finish(i) in order, one at a time, each after its work(i).
/// At most `in_flight` pieces are between the start of work and the end of finish, so i and i +
/// in_flight may share memory. Once finish(i) returns false, no further piece starts and finish is
/// not called again.
template <typename Work, typename Finish>
void ParallelInOrder(std::size_t count, std::size_t in_flight, const Work& work,
                     const Finish& finish) {
  if (NeedsOwnThreads()) return plain::ParallelInOrder(count, in_flight, work, finish);
  std::size_t next = 0;
  std::atomic<bool> stopped = false;
  const auto take = [&](tbb::flow_control& control) -> std::size_t {
    if (next == count || stopped) control.stop();
    return next++;
  };
  const auto run = [&](std::size_t i) {
    work(i);
    return i;
  };
  const auto end = [&](std::size_t i) {
    if (!stopped && !finish(i)) stopped = true;
  };
  tbb::parallel_pipeline(
      in_flight, tbb::make_filter<void, std::size_t>(tbb::filter_mode::serial_in_order, take) &
                     tbb::make_filter<std::size_t, std::size_t>(tbb::filter_mode::parallel, run) &
                     tbb::make_filter<std::size_t, void>(tbb::filter_mode::serial_in_order, end));
}

/// Sorts like std::sort, on several threads.
template <typename Iterator, typename Before>
void ParallelSort(Iterator begin, Iterator end, const Before& before) {
  if (NeedsOwnThreads()) return std::sort(begin, end, before);
  tbb::parallel_sort(begin, end, before);
}

#endif

}  // namespace internal
}  // namespace rhizome
