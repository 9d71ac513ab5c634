#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>

#include "rhizome/index/background.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/threads.h"

#if !defined(__SANITIZE_THREAD__)
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#endif

namespace rhizome {
inline namespace RHIZOME_API internal {

// Loops over independent pieces of work, on the threads of the current TaskArena. They hide that
// there are two sources of threads. oneTBB is the ordinary one. Plain threads serve builds with the
// thread sanitizer, which cannot see how oneTBB's threads synchronise, and work in the background,
// because oneTBB keeps its threads forever, and those made there would stay at low priority. Either
// way the loop rethrows what a piece throws.

namespace plain {

inline std::size_t Threads(std::size_t most) {
#if defined(__SANITIZE_THREAD__)
  constexpr unsigned kLeast = 4;  // the sanitizer is to see several on any machine
#else
  constexpr unsigned kLeast = 1;
#endif
  return std::min<std::size_t>(most, std::max(std::thread::hardware_concurrency(), kLeast));
}

/// Keeps the first exception of several threads, for the thread that waits for them to rethrow.
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

/// Limits the threads of the loops that run within its execute(body). The limit is at most the
/// number of processors: more would gain nothing, and oneTBB warns about more on stderr. No result
/// depends on the number of threads.
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

/// Calls body(i) once for each i below `count`, in any order and concurrently; returns when all
/// calls are done.
template <typename Body>
void ParallelFor(std::size_t count, const Body& body) {
  if (NeedsOwnThreads()) return plain::ParallelFor(count, body);
  tbb::parallel_for(std::size_t{0}, count, body);
}

/// Calls work(i) like ParallelFor, and finish(i) in order, one at a time, each after its work(i).
/// At most `in_flight` pieces are between the start of work and the end of finish, so i and i +
/// in_flight may share memory. Once finish(i) returns false, it takes no further piece and calls
/// finish no more.
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
