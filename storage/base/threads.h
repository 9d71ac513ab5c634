#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "rhizome/storage/export.h"
#include "rhizome/storage/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

// Every thread of the library's own is one of these: neither one that cannot be started nor an
// exception in one ends the process.

/// A thread that does one piece of work. Threads: Start and Join from one. The destructor joins.
class Thread {
 public:
  Thread() = default;
  ~Thread() { static_cast<void>(Join()); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Errors: kOutOfMemory, the system gives no more threads.
  Status Start(std::function<Status()> work);

  /// Waits; what the work returned, an exception as an error. OK where none was started.
  Status Join() noexcept;

  bool started() const { return thread_.joinable(); }

 private:
  std::thread thread_;
  Status status_;  // the thread's until it is joined
};

/// Does `work` on up to `threads` threads at once, the caller's among them, and waits for all.
/// `work` takes pieces until there are none left: where the system gives fewer threads, these do
/// all of it. Returns the first error, an exception as one; the others go on until they notice by
/// themselves.
Status RunOnThreads(std::size_t threads, const std::function<Status()>& work) noexcept;

}  // namespace internal
}  // namespace rhizome
