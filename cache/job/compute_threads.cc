#include "cache/job/compute_threads.h"

#include <algorithm>
#include <memory>

#include "index/base/parallel.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {
namespace {

struct Threads {
  std::uint32_t count = 1;
  std::unique_ptr<TaskArena> arena = std::make_unique<TaskArena>(1);
  void (*prepare)() = nullptr;
};

Threads& All() {
  static Threads threads;
  return threads;
}

/// Runs `prepare` on the calling thread if it has changed since this thread was last prepared.
/// Arena threads are shared with the rest of the process and may come and go, so each thread
/// remembers which function prepared it.
void PrepareThread() {
  thread_local void (*prepared)() = nullptr;
  if (prepared == All().prepare) return;
  prepared = All().prepare;
  if (prepared != nullptr) prepared();
}

}  // namespace

void SetComputeThreads(std::uint32_t threads, void (*prepare)()) {
  static Mutex mutex;
  const MutexLock lock(mutex);
  const std::uint32_t count = std::clamp<std::uint32_t>(threads, 1, 1024);
  // Ranks that run as threads of one process set the same values, and some may already be
  // computing.
  if (All().count == count && All().prepare == prepare) return;
  All().count = count;
  All().arena = std::make_unique<TaskArena>(static_cast<int>(All().count));
  All().prepare = prepare;
}

std::uint32_t ComputeThreads() { return All().count; }

void ComputeFor(std::size_t count, const std::function<void(std::size_t)>& body) {
  const auto run = [&](std::size_t i) {
    PrepareThread();
    body(i);
  };
  if (count == 1) return run(0);
  All().arena->execute([&] { ParallelFor(count, run); });
}

}  // namespace internal
}  // namespace rhizome
