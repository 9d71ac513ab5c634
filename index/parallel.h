#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
#else
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#endif

namespace rhizome {

// Loops over independent pieces of work, on the threads of the current TaskArena. One place
// for them, because the thread sanitizer cannot see how oneTBB's threads wait for each other: in
// its builds plain threads run the same bodies, and every report is about our own code.

#if defined(__SANITIZE_THREAD__)

inline constexpr std::size_t kSanitizedThreads = 4;

class TaskArena {
 public:
  explicit TaskArena(int) {}
  template <typename Body>
  void execute(const Body& body) {
    body();
  }
};

template <typename Body>
void ParallelFor(std::size_t count, const Body& body) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < std::min(count, kSanitizedThreads); ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <typename Work, typename Finish>
void ParallelInOrder(std::size_t count, std::size_t in_flight, const Work& work,
                     const Finish& finish) {
  std::mutex mutex;
  std::condition_variable turn;
  std::size_t next = 0;
  std::size_t finished = 0;
  bool stopped = false;
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
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < std::min(in_flight, kSanitizedThreads); ++t)
    threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
}

template <typename Iterator, typename Before>
void ParallelSort(Iterator begin, Iterator end, const Before& before) {
  std::sort(begin, end, before);
}

#else

/// How many threads the loops below may use: those that run within its execute(body). There are
/// never more than processors, which would gain nothing, and which oneTBB answers with a warning on
/// stderr; no result depends on how many there are.
class TaskArena {
 public:
  explicit TaskArena(int threads)
      : arena_(std::clamp(threads, 1, tbb::info::default_concurrency())) {}
  template <typename Body>
  void execute(const Body& body) {
    arena_.execute(body);
  }

 private:
  tbb::task_arena arena_;
};

/// Calls body(i) once for each i below `count`, in any order and at the same time; returns when all
/// are done.
template <typename Body>
void ParallelFor(std::size_t count, const Body& body) {
  tbb::parallel_for(std::size_t{0}, count, body);
}

/// Calls work(i) as ParallelFor does, and finish(i) in order, one at a time, each once its work is
/// done; at most `in_flight` are between the two, so that i and i + in_flight may share memory.
/// Stops early, with what is in flight finished or not, once finish(i) is false.
template <typename Work, typename Finish>
void ParallelInOrder(std::size_t count, std::size_t in_flight, const Work& work,
                     const Finish& finish) {
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

/// std::sort on several threads.
template <typename Iterator, typename Before>
void ParallelSort(Iterator begin, Iterator end, const Before& before) {
  tbb::parallel_sort(begin, end, before);
}

#endif

}  // namespace rhizome
