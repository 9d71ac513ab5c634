#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>

#include "rhizome/storage/logger.h"
#include "rhizome/storage/process.h"

namespace rhizome::python {

/// Takes the lines of a store's log to a function of Python's. The engine's thread only queues
/// them; the interpreter's main thread, or whoever waits for a job or closes the store, hands them
/// on. So the engine never waits for the GIL, and a line that comes while a store is being closed
/// cannot block its closing; and the function may do what it likes, close the store included.
/// Threads: with the GIL.
class LogSink {
 public:
  /// `receiver` is called with a rhizome.LogLine.
  static std::shared_ptr<LogSink> Make(nanobind::object receiver);

  /// Returns what StoreOptions want; it outlives the sink.
  LogCallback callback() const;

  /// Hands on the lines that wait. What the receiver raises is reported as sys.unraisablehook does.
  void Deliver();

 private:
  /// The lines that wait. Threads: any, those of a forked child too.
  class Queue {
   public:
    void Push(const LogLine& line) RHIZOME_EXCLUDES(mutex_);
    std::deque<LogLine> TakeAll() RHIZOME_EXCLUDES(mutex_);

   private:
    ForkMutex mutex_;
    std::deque<LogLine> lines_ RHIZOME_GUARDED_BY(mutex_);
  };

  explicit LogSink(nanobind::object receiver) : receiver_(std::move(receiver)) {}

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  const nanobind::object receiver_;
};

/// Calls Deliver of all sinks that there are.
void DeliverLogs();

/// Delivers what waits, and lets no line of any store pass from then on: the interpreter ends, in
/// which receivers cannot even import.
void StopLogs();

}  // namespace rhizome::python
