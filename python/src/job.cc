#include "job.h"

#include <nanobind/stl/string.h>

#include "log.h"

namespace rhizome::python {

JobWatch::JobWatch(nb::object progress)
    : progress_(std::move(progress)), control_([this](const JobControl::Progress& report) {
        const std::scoped_lock lock(mutex_);
        latest_ = JobReport{std::string(report.phase), report.done, report.total};
      }) {
  if (!progress_.is_none() && PyCallable_Check(progress_.ptr()) == 0)
    throw nb::type_error("progress must be a function (phase, done, total), or None");
}

void JobWatch::Finished() {
  const std::scoped_lock lock(mutex_);
  finished_ = true;
  wake_.notify_one();
}

void JobWatch::Show() {
  CheckSignals();
  DeliverLogs();
  if (progress_.is_none()) return;
  std::optional<JobReport> report;
  {
    const std::scoped_lock lock(mutex_);
    report.swap(latest_);
  }
  if (report) InPython([&] { progress_(report->phase, report->done, report->total); });
}

void JobWatch::Wait() {
  std::optional<nb::python_error> raised;
  for (;;) {
    const bool finished = Unlocked([&] {
      std::unique_lock lock(mutex_);
      return wake_.wait_for(lock, kSignalPoll, [&] { return finished_; });
    });
    if (finished) break;  // a signal after this point is not the job's
    if (!raised) {
      try {
        Show();
      } catch (nb::python_error& error) {
        control_.Cancel();
        raised.emplace(std::move(error));
      }
    }
  }
  if (raised) throw nb::python_error(std::move(*raised));
}

}  // namespace rhizome::python
