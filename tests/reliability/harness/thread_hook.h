#pragma once

#include <cstdint>

namespace rhizome::testing {

/// Lets threads fail to start (EAGAIN, as at a limit on processes) that the library starts itself,
/// from the `fail_at`-th on (counted from 0). Passed over are RocksDB's and oneTBB's. One at a
/// time.
class ThreadFaults {
 public:
  explicit ThreadFaults(std::uint64_t fail_at);
  ~ThreadFaults();
  ThreadFaults(const ThreadFaults&) = delete;
  ThreadFaults& operator=(const ThreadFaults&) = delete;

  /// How many failed so far.
  std::uint64_t failed() const;
};

}  // namespace rhizome::testing
