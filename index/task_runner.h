#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "rhizome/storage/job_control.h"
#include "rhizome/storage/mutex.h"

namespace rhizome {

/// Runs tasks 0..count-1, a few at a time, and reports how many are done. The first failure ends
/// it: tasks that have begun are waited for, no others begin. Threads: Run once, from one.
class TaskRunner {
 public:
  TaskRunner(std::uint64_t count, std::string_view phase, const JobControl& control)
      : count_(count), phase_(phase), control_(control) {}

  Status Run(std::uint32_t threads, const std::function<Status(std::uint64_t task)>& task) {
    RHIZOME_RETURN_IF_ERROR(Report(0));
    std::vector<std::jthread> helpers;  // joined where Work throws, too
    for (std::uint32_t i = 1; i < threads; ++i) helpers.emplace_back([&] { Work(task); });
    Work(task);
    for (std::jthread& helper : helpers) helper.join();
    const MutexLock lock(mutex_);
    return failed_;
  }

 private:
  Status Report(std::uint64_t done) const {
    return control_.Report({.phase = phase_, .done = done, .total = count_});
  }

  void Work(const std::function<Status(std::uint64_t task)>& task) {
    while (!stop_) {
      const std::uint64_t number = next_++;
      if (number >= count_) return;
      Status status = task(number);
      const MutexLock lock(mutex_);
      if (status.ok()) status = Report(++done_);
      if (status.ok()) continue;
      if (failed_.ok()) failed_ = status;
      stop_ = true;
    }
  }

  const std::uint64_t count_;
  const std::string_view phase_;
  const JobControl& control_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  std::uint64_t done_ RHIZOME_GUARDED_BY(mutex_) = 0;
  Status failed_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace rhizome
