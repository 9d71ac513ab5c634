#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Progress reports and cancellation of a long operation. Threads: Cancel may be called from any
/// thread and from a signal handler; `on_progress` is called from one thread at a time. Ownership:
/// must outlive the operation that uses it.
class JobControl {
 public:
  /// One report: `done` of `total` units of `phase` (total 0: unknown).
  struct Progress {
    std::string_view phase;
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::string_view detail = {};  ///< a few words beside the bar, such as "loss 0.71"
  };

  JobControl() = default;
  explicit JobControl(std::function<void(const Progress&)> on_progress)
      : on_progress_(std::move(on_progress)) {}

  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  /// Reports progress, then returns kInterrupted if the job was cancelled. Cheap enough for inner
  /// loops whose iterations do at least a few microseconds of work.
  Status Report(const Progress& progress) const {
    if (on_progress_) on_progress_(progress);
    return CheckCancelled();
  }
  Status CheckCancelled() const {
    return cancelled() ? Status::Interrupted("interrupted; nothing was published") : Status::Ok();
  }

 private:
  std::function<void(const Progress&)> on_progress_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace rhizome
