#include "rhizome/cache/compute_threads.h"

#include <algorithm>
#include <memory>

#include "rhizome/index/parallel.h"
#include "rhizome/storage/mutex.h"

namespace rhizome::inline internal {
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

/// Prepares the calling thread if `prepare` has changed since. Threads of the arena are shared with
/// the rest of the process and come and go, so each remembers by which function it was prepared.
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
  // Ranks that are threads set the same, and some may compute already.
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

}  // namespace rhizome::inline internal
