#pragma once

#include <cstddef>
#include <cstdint>

#include "index/base/parallel.h"

namespace rhizome {
inline namespace internal {

/// Runs independent pieces of work on a fixed number of threads. The pieces must not depend on the
/// number of threads, so that the result does not depend on it either.
/// Threads: one caller at a time.
class Workers {
 public:
  explicit Workers(std::uint32_t threads)
      : threads_(threads), arena_(static_cast<int>(threads < 1024 ? threads : 1024)) {}

  std::uint32_t threads() const { return threads_; }

  /// Calls body(0) .. body(count - 1), each once, and returns when all are done. `work` estimates
  /// the cost of the whole loop, in memory accesses: a loop below kMinWork runs on the caller's
  /// thread, because waking threads costs more.
  template <typename Body>
  void ForEach(std::size_t count, std::uint64_t work, Body&& body) {
    constexpr std::uint64_t kMinWork = 4096;
    if (threads_ == 1 || count < 2 || work < kMinWork) {
      for (std::size_t i = 0; i < count; ++i) body(i);
    } else {
      arena_.execute([&] { ParallelFor(count, body); });
    }
  }

 private:
  const std::uint32_t threads_;
  TaskArena arena_;
};

}  // namespace internal
}  // namespace rhizome
