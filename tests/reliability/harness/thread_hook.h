#pragma once

#include <cstdint>

namespace rhizome::testing {

/// Makes threads that the library itself starts fail (EAGAIN, as at a limit on processes) from the
/// `fail_at`-th on (counted from 0). RocksDB's and oneTBB's threads do not fail. Only one object
/// may exist at a time.
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
