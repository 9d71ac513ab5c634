#include "reliability/harness/process.h"

#include <malloc.h>
#include <sched.h>
#include <sys/syscall.h>
#include <tbb/global_control.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <thread>
#include <vector>

#include "storage/base/pause.h"
#include "storage/io/io_completion.h"
#include "testing/forbid_call.h"

namespace rhizome::testing {
namespace {

void KeepTo(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

std::vector<int> Processors() {
  std::vector<int> out;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) out.push_back(i);
  return out;
}

}  // namespace

void OnAllProcessors(const std::function<void()>& work) {
  std::vector<std::thread> threads;
  for (const int processor : Processors()) {
    threads.emplace_back([&work, processor] {
      KeepTo(processor);
      work();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void PrepareProcess() {
  // Uses a single thread, because oneTBB's threads wait for work by polling.
  static const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  static const bool once = [] {
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    ReadWithoutThreads();
    PauseNoMore();
    return ForbidCall(SYS_io_uring_setup, EPERM);
  }();
  static_cast<void>(once);
}

}  // namespace rhizome::testing
