#pragma once

#include <cstdint>

namespace rhizome::testing {

/// Makes thread starts of the library fail (EAGAIN, as at a limit on processes) from the
/// `fail_at`-th on, counted from 0. Threads of RocksDB and oneTBB do not fail. Only one object may
/// exist at a time.
class ThreadFaults {
 public:
  explicit ThreadFaults(std::uint64_t fail_at);
  ~ThreadFaults();
  ThreadFaults(const ThreadFaults&) = delete;
  ThreadFaults& operator=(const ThreadFaults&) = delete;

  /// Returns how many thread starts failed so far.
  std::uint64_t failed() const;
};

}  // namespace rhizome::testing
