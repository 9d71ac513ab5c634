#include "storage/base/process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "storage/base/mutant.h"

namespace rhizome {
namespace {

std::atomic<std::uint64_t> forks{0};

/// All ForkMutexes. They are locked before a fork and unlocked after it. The registry is never
/// destroyed, because a program may fork while it ends.
class ForkMutexes {
 public:
  static ForkMutexes& Instance() {
    static auto* const instance = new ForkMutexes;
    return *instance;
  }
  std::list<ForkMutex*>::iterator Add(ForkMutex* mutex) {
    const MutexLock lock(mutex_);
    return all_.insert(all_.end(), mutex);
  }
  void Remove(std::list<ForkMutex*>::iterator place) {
    const MutexLock lock(mutex_);
    all_.erase(place);
  }
  void LockAll() RHIZOME_THREAD_ATTRIBUTE(no_thread_safety_analysis) {
    mutex_.Lock();
    for (ForkMutex* const mutex : all_) mutex->Lock();
  }
  void UnlockAll() RHIZOME_THREAD_ATTRIBUTE(no_thread_safety_analysis) {
    for (ForkMutex* const mutex : all_) mutex->Unlock();
    mutex_.Unlock();
  }

 private:
  Mutex mutex_;
  std::list<ForkMutex*> all_ RHIZOME_GUARDED_BY(mutex_);
};

void LockBeforeFork() { ForkMutexes::Instance().LockAll(); }
void UnlockInParent() { ForkMutexes::Instance().UnlockAll(); }
void UnlockInChild() {
  forks.fetch_add(1, std::memory_order_relaxed);
  ForkMutexes::Instance().UnlockAll();
}

}  // namespace

std::uint64_t ForkCount() {
  if (RHIZOME_MUTANT("a fork is not noticed")) return 0;
  // If there is no memory for the handlers, the pid serves instead of the count.
  static const bool handled = pthread_atfork(LockBeforeFork, UnlockInParent, UnlockInChild) == 0;
  return handled ? forks.load(std::memory_order_relaxed) : static_cast<std::uint64_t>(getpid());
}

OwnerProcess::OwnerProcess() : forks_(ForkCount()), pid_(getpid()) {}

Status OwnerProcess::Check(std::string_view what) const {
  if (here()) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{} was opened by process {}, and this process is a fork of it, which cannot use "
                  "it; start a new process (exec) that opens the store",
                  what, pid_));
}

ForkMutex::ForkMutex() : place_(ForkMutexes::Instance().Add(this)) {
  static_cast<void>(ForkCount());  // registers the handlers that lock it before a fork
}
ForkMutex::~ForkMutex() { ForkMutexes::Instance().Remove(place_); }

}  // namespace rhizome
