#pragma once

#include <chrono>
#include <cstdint>

#include "rhizome/metrics.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

inline constexpr std::uint64_t kSampledCalls = 16;

/// Times a call and counts its error. Does nothing if `metrics` is null.
class CallMetrics {
 public:
  /// Times this call.
  CallMetrics(Metrics* metrics, Timer timer) : CallMetrics(metrics, timer, metrics != nullptr) {}

  /// Counts this call in `calls`, and times one call in kSampledCalls.
  CallMetrics(Metrics* metrics, Timer timer, Counter calls)
      : CallMetrics(metrics, timer,
                    metrics != nullptr && metrics->Add(calls) % kSampledCalls == 0) {}

  CallMetrics(const CallMetrics&) = delete;
  CallMetrics& operator=(const CallMetrics&) = delete;
  ~CallMetrics() {
    if (timed_) metrics_->Observe(timer_, std::chrono::steady_clock::now() - start_);
  }

  /// Counts `status` if it is an error, and returns it.
  Status Done(Status status) const {
    if (metrics_ != nullptr && !status.ok()) metrics_->CountError(status.code());
    return status;
  }

 private:
  CallMetrics(Metrics* metrics, Timer timer, bool timed)
      : metrics_(metrics), timer_(timer), timed_(timed) {
    if (timed_) start_ = std::chrono::steady_clock::now();
  }

  Metrics* const metrics_;
  const Timer timer_;
  const bool timed_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace internal
}  // namespace rhizome
