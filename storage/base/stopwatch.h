#pragma once

#include <chrono>

namespace rhizome {
inline namespace internal {

/// Measures the time since its construction, by the steady clock. Threads: any.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace internal
}  // namespace rhizome
