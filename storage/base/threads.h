#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "rhizome/storage/export.h"
#include "rhizome/storage/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

// The library starts its threads by these, so that neither a thread that cannot be started nor an
// exception in one ends the process.

/// A thread that runs one function. Its destructor joins. Threads: call Start and Join from one.
class Thread {
 public:
  Thread() = default;
  ~Thread() { static_cast<void>(Join()); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Errors: kOutOfMemory, the system gives no more threads.
  Status Start(std::function<Status()> work);

  /// Waits for the work and returns its Status; an exception counts as an error. Returns OK if
  /// nothing was started.
  Status Join() noexcept;

  bool started() const { return thread_.joinable(); }

 private:
  std::thread thread_;
  Status status_;  // written by the thread; read after it was joined
};

/// Runs `work` on up to `threads` threads at once, the caller's among them, and waits for all.
/// `work` must take pieces until none is left, because the system may give fewer threads, which
/// then do all of it. Returns the error of the first thread that has one (the caller's first;
/// exceptions count as errors). An error in one thread does not stop the others.
Status RunOnThreads(std::size_t threads, const std::function<Status()>& work) noexcept;

}  // namespace internal
}  // namespace rhizome
