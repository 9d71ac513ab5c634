#pragma once

#include <chrono>
#include <condition_variable>
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

/// Waits until `future` is ready, without the GIL, and runs Python signal handlers while it waits.
/// Throws any exception that a handler raises; the work continues in that case.
template <typename T>
void Await(const std::future<T>& future) {
  while (Unlocked([&] { return future.wait_for(kSignalPoll); }) != std::future_status::ready)
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
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
