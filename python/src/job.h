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
#include "rhizome/storage/job_control.h"

namespace rhizome::python {

/// How often Python's handlers of signals get their turn while something is waited for.
inline constexpr std::chrono::milliseconds kSignalPoll{50};

/// Waits until `future` is ready, without the GIL, while Python's handlers of signals run. Throws
/// what one of them raises; then the work goes on.
template <typename T>
void Await(const std::future<T>& future) {
  while (Unlocked([&] { return future.wait_for(kSignalPoll); }) != std::future_status::ready)
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// The latest report of a job, which its thread writes and the waiting one shows.
struct JobReport {
  std::string phase;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

/// Waits for jobs on behalf of Python. A job runs on a thread of its own, which never enters
/// Python, while the calling thread wakes up every kSignalPoll, so that a signal is seen however
/// long the job's own steps take.
class JobWatch {
 public:
  /// `progress`: None, or a callable (phase, done, total).
  explicit JobWatch(nb::object progress);

  const JobControl& control() const { return control_; }

  /// The following two are for RunJob. Wait returns when `finished` was called; meanwhile it runs
  /// Python's handlers of signals and `progress`. If one raises, the job is cancelled, and Wait
  /// throws that exception once the job has ended.
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
/// exception of its error; KeyboardInterrupt or whatever else a handler of a signal or `progress`
/// raised, in which case the job was cancelled.
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
