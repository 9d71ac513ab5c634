#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

// The library starts its threads with these functions, so that neither a thread that cannot be
// started nor an exception in a thread ends the process.

/// A thread that runs one function. The destructor joins it. Threads: call Start and Join from the
/// same thread.
class Thread {
 public:
  Thread() = default;
  ~Thread() { static_cast<void>(Join()); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Errors: kOutOfMemory, the system grants no more threads.
  Status Start(std::function<Status()> work);

  /// Waits for the work and returns its Status; an exception counts as an error. Returns OK if
  /// nothing was started.
  Status Join() noexcept;

  bool started() const { return thread_.joinable(); }

 private:
  std::thread thread_;
  Status status_;  // written by the thread; read after the join
};

/// Runs `work` on up to `threads` threads at once, including the calling one, and waits for all.
/// `work` must fetch pieces until none is left, because the system may grant fewer threads, which
/// then do all pieces. Returns the error of the first thread that failed (the caller's first;
/// exceptions count as errors). An error in one thread does not stop the others.
Status RunOnThreads(std::size_t threads, const std::function<Status()>& work) noexcept;

}  // namespace internal
}  // namespace rhizome
