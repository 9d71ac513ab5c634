#include "rhizome/gnn/compute_threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>

#include "rhizome/index/parallel.h"

namespace rhizome {
namespace {

struct Threads {
  std::uint32_t count = 1;
  std::unique_ptr<TaskArena> arena = std::make_unique<TaskArena>(1);
};

Threads& All() {
  static Threads threads;
  return threads;
}

/// libtorch's thread count is each thread's own.
void HoldLibtorchToOneThread() {
  thread_local const bool done = (at::set_num_threads(1), true);
  static_cast<void>(done);
}

}  // namespace

void SetComputeThreads(std::uint32_t threads) {
  at::set_num_threads(1);
  All().count = std::clamp<std::uint32_t>(threads, 1, 1024);
  All().arena = std::make_unique<TaskArena>(static_cast<int>(All().count));
}

std::uint32_t ComputeThreads() { return All().count; }

void ComputeFor(std::size_t count, const std::function<void(std::size_t)>& body) {
  const auto run = [&](std::size_t i) {
    HoldLibtorchToOneThread();
    body(i);
  };
  if (count == 1) return run(0);
  All().arena->execute([&] { ParallelFor(count, run); });
}

}  // namespace rhizome
