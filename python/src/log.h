#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>

#include "storage/base/logger.h"
#include "storage/base/process.h"

namespace rhizome::python {

/// Passes the lines of a store's log to a Python function. The engine's thread only queues them.
/// The interpreter's main thread, or a thread that waits for a job or closes the store, delivers
/// them. The engine therefore never waits for the GIL, a line that arrives while a store is being
/// closed cannot block the close, and the function may do anything, including closing the store.
/// Threads: requires the GIL.
class LogSink {
 public:
  /// `receiver` is called with a rhizome.LogLine.
  static std::shared_ptr<LogSink> Make(nanobind::object receiver);

  /// Returns the callback for StoreOptions. It may outlive the sink.
  LogCallback callback() const;

  /// Delivers the queued lines. Exceptions of the receiver are reported through sys.unraisablehook.
  void Deliver();

 private:
  /// The queued lines. Threads: any, including threads of a forked child.
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

/// Calls Deliver on all sinks.
void DeliverLogs();

/// Delivers the queued lines, then discards all further lines of any store. Called when the
/// interpreter shuts down and receivers can no longer import modules.
void StopLogs();

}  // namespace rhizome::python
