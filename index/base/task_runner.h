#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/job_control.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Runs tasks 0..count-1, a few at a time, and reports the number of finished tasks. After the
/// first failure no further task starts, and Run returns once the running tasks end.
/// Threads: Run may be called once, from one thread.
class TaskRunner {
 public:
  TaskRunner(std::uint64_t count, std::string_view phase, const JobControl& control)
      : count_(count), phase_(phase), control_(control) {}

  Status Run(std::uint32_t threads, const std::function<Status(std::uint64_t task)>& task) {
    RHIZOME_RETURN_IF_ERROR(Report(0));
    return RunOnThreads(threads, [&] {
      const Status status = Guarded([&] { return Work(task); });
      if (!status.ok()) stop_ = true;
      return status;
    });
  }

 private:
  Status Report(std::uint64_t done) const {
    return control_.Report({.phase = phase_, .done = done, .total = count_});
  }

  Status Work(const std::function<Status(std::uint64_t task)>& task) {
    while (!stop_) {
      const std::uint64_t number = next_++;
      if (number >= count_) break;
      RHIZOME_RETURN_IF_ERROR(task(number));
      const MutexLock lock(mutex_);
      RHIZOME_RETURN_IF_ERROR(Report(++done_));
    }
    return Status::Ok();
  }

  const std::uint64_t count_;
  const std::string_view phase_;
  const JobControl& control_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  std::uint64_t done_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

}  // namespace internal
}  // namespace rhizome
