#include "index/base/background.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "rhizome/status.h"
#include "storage/base/library_threads.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

namespace {

// A nice value of 10 gives a thread about a tenth of the processor share of an ordinary one: it
// yields at once to a thread that wakes up, and still makes progress on a busy machine.
constexpr int kNice = 10;

// The kernel defines these in <linux/ioprio.h> (see ioprio_set(2)). Some kernel releases, such as
// 6.1.192, ship a header that compiles only as C because a parameter is called `class`.
constexpr int kOneThread = 1;
constexpr int kBestEffort = 2;
constexpr int kIoClassShift = 13;
constexpr int kLowestLevel = 7;

thread_local bool in_background = false;

// Errors are ignored: a container may refuse either call, and the work then runs at normal
// priority.
void LowerPriority() {
  const auto thread = static_cast<id_t>(gettid());
  (void)setpriority(PRIO_PROCESS, thread, std::max(getpriority(PRIO_PROCESS, thread), kNice));
  (void)syscall(SYS_ioprio_set, kOneThread, 0, kBestEffort << kIoClassShift | kLowestLevel);
}

}  // namespace

Status RunInBackground(const std::function<Status()>& work) {
  Thread thread;
  RHIZOME_RETURN_IF_ERROR(thread.Start([&] {
    in_background = true;
    LowerPriority();
    return work();
  }));
  return thread.Join();
}

bool InBackground() { return in_background; }

bool NeedsOwnThreads() {
  if (in_background) return true;
  static const LibraryThreads pool;  // the thread pool of oneTBB, owned by the process that used it
                                     // first
  return !pool.here();
}

}  // namespace internal
}  // namespace rhizome
