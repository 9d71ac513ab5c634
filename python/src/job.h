#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core.h"
#include "rhizome/job_control.h"

namespace rhizome::python {

/// Interval at which Python signal handlers run while a call waits.
inline constexpr std::chrono::milliseconds kSignalPoll{50};

/// Number of rows, vertices or edges from which on a call is long, so that signals are handled in
/// it.
inline constexpr std::size_t kManyItems = 8192;

/// Runs Python signal handlers. Throws any exception that one of them raises.
inline void CheckSignals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// Calls `work(first, size)`, which returns a Status, for pieces of `count` items, without the GIL.
/// Runs Python signal handlers between the pieces, and throws any exception that one raises.
template <typename Work>
void InPieces(std::size_t count, Work&& work) {
  std::size_t first = 0;
  do {
    const std::size_t size = std::min(kManyItems, count - first);
    Check(Unlocked([&] { return work(first, size); }));
    first += size;
    if (first < count) CheckSignals();
  } while (first < count);
}

/// Waits until `future` is ready, without the GIL, and runs Python signal handlers while it waits.
/// Throws any exception that a handler raises; the work continues in that case.
template <typename T>
void Await(const std::future<T>& future) {
  while (Unlocked([&] { return future.wait_for(kSignalPoll); }) != std::future_status::ready)
    CheckSignals();
}

/// Runs `work()` on a separate thread, and returns its result. `work` owns everything that it uses,
/// and needs no GIL, not even to be destroyed. If a Python signal handler raises, the exception is
/// thrown at once; the work then completes on its thread, and its result is dropped.
template <typename Work>
auto Abandonable(Work work) {
  std::packaged_task<decltype(work())()> task([work = std::move(work)]() mutable {
    const InEngine here;
    return work();
  });
  auto future = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    Raise(Status::OutOfMemory("the system gives no thread for a long call"));
  }
  Await(future);
  return future.get();
}

/// The latest progress report of a job. The job's thread writes it, and the waiting thread shows
/// it.
struct JobReport {
  std::string phase;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

/// Waits for a job on behalf of Python. The job runs on a separate thread, which never enters
/// Python. The calling thread wakes up every kSignalPoll, so that signals are handled even during
/// long steps of the job.
class JobWatch {
 public:
  /// `progress` is None, or a callable (phase, done, total).
  explicit JobWatch(nb::object progress);

  const JobControl& control() const { return control_; }

  /// Wait and Finished are for RunJob. Wait runs Python signal handlers and `progress` until
  /// Finished is called. If one of them raises, the job is cancelled, and Wait throws that
  /// exception after the job has ended.
  void Wait();
  void Finished();

 private:
  void Show();

  nb::object progress_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;
  std::optional<JobReport> latest_;
  JobControl control_;
};

/// The result of a job that has no value.
inline Result<bool> Completed(const Status& status) {
  if (!status.ok()) return Fail(status);
  return true;
}

/// Runs `job(control)`, which returns a Result, on a thread and returns its value. Throws the
/// exception that corresponds to its error, or any exception raised by a signal handler (such as
/// KeyboardInterrupt) or by `progress`; the job is then cancelled.
template <typename Job>
auto RunJob(nb::object progress, About about, Job&& job) {
  JobWatch watch(std::move(progress));
  decltype(job(watch.control())) result = Fail(Status::Interrupted("the job did not begin"));
  std::exception_ptr failure;
  std::thread thread;
  try {
    thread = std::thread([&] {
      try {
        result = job(watch.control());
      } catch (...) {
        failure = std::current_exception();
      }
      watch.Finished();
    });
  } catch (const std::system_error&) {
    Raise(Status::OutOfMemory("the system gives no thread for the job"));
  }
  const auto join = [&] { Unlocked([&] { thread.join(); }); };
  try {
    watch.Wait();
  } catch (...) {
    join();
    throw;
  }
  join();
  if (failure) std::rethrow_exception(failure);
  return Take(std::move(result), about);
}

}  // namespace rhizome::python
