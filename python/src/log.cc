#include "log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core.h"
#include "rhizome/store_options.h"
#include "storage/base/logger.h"
#include "storage/base/mutex.h"

namespace rhizome::python {
namespace {

std::atomic<bool> announced = false;  // the main thread will call DeliverLogs
std::atomic<bool> stopped = false;

/// All sinks; guarded by the GIL. Never destroyed, because it may be used until the process ends.
std::vector<std::weak_ptr<LogSink>>& Sinks() {
  static auto& sinks = *new std::vector<std::weak_ptr<LogSink>>;
  return sinks;
}

int DeliverPending(void* /*unused*/) {
  DeliverLogs();
  return 0;
}

nb::object TextOf(std::string_view text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}
nb::object ValueOf(std::int64_t value) { return nb::int_(value); }
nb::object ValueOf(double value) { return nb::float_(value); }
nb::object ValueOf(const std::string& value) { return TextOf(value); }

nb::object LineOf(const LogLine& line) {
  nb::dict fields;
  for (const LogField& field : line.fields)
    fields[TextOf(field.key)] =
        std::visit([](const auto& value) { return ValueOf(value); }, field.value);
  const std::chrono::duration<double> seconds = line.time.time_since_epoch();
  return nb::module_::import_("rhizome._types")
      .attr("LogLine")(seconds.count(), TextOf(LogLevelName(line.level)), TextOf(line.component),
                       TextOf(line.message), fields);
}

}  // namespace

void LogSink::Queue::Push(const LogLine& line) {
  if (stopped) return;
  {
    const MutexLock lock(mutex_);
    if (lines_.size() >= Logger::kMaxWaiting) return;
    lines_.push_back(line);
  }
  // This needs no GIL. If the interpreter's queue of pending calls is full, the next line tries
  // again.
  if (!announced.exchange(true) && Py_AddPendingCall(DeliverPending, nullptr) != 0)
    announced = false;
}

std::deque<LogLine> LogSink::Queue::TakeAll() {
  const MutexLock lock(mutex_);
  return std::exchange(lines_, {});
}

std::shared_ptr<LogSink> LogSink::Make(nb::object receiver) {
  std::shared_ptr<LogSink> sink(new LogSink(std::move(receiver)));
  std::erase_if(Sinks(), [](const auto& one) { return one.expired(); });
  Sinks().push_back(sink);
  return sink;
}

LogCallback LogSink::callback() const {
  return [queue = queue_](const LogLine& line) { queue->Push(line); };
}

void LogSink::Deliver() {
  const nb::error_scope kept;  // may be called while an exception is being handled
  for (const LogLine& line : queue_->TakeAll()) {
    try {
      InPython([&] { receiver_(LineOf(line)); });
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("the log of a rhizome store");
    }
  }
}

void DeliverLogs() {
  announced = false;
  if (stopped) return;
  // a copy, because a receiver may open a store
  const std::vector<std::weak_ptr<LogSink>> sinks = Sinks();
  for (const auto& one : sinks)
    if (const auto sink = one.lock()) sink->Deliver();
}

void StopLogs() {
  DeliverLogs();
  stopped = true;
}

}  // namespace rhizome::python
