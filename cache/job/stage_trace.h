#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Stages of a minibatch or a superbatch. Each stage has a separate track in a trace.
enum class Stage : std::uint8_t { kSample, kSchedule, kSwitch, kRead, kWait, kCompute };
inline constexpr std::size_t kStages = 6;
std::string_view StageName(Stage stage);

/// Records when the stages of a job ran, to show how they overlap, and writes them as Chrome trace
/// events (chrome://tracing, Perfetto). Only the first kMaxEvents events are kept.
/// Threads: Add may be called from any thread.
class StageTrace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxEvents = std::size_t{1} << 20;

  StageTrace() : begin_(Clock::now()) {}

  /// Adds an event. `number` is the index of the minibatch or superbatch, counted from 0.
  void Add(Stage stage, std::uint64_t number, Clock::time_point start, Clock::time_point end);

  /// Writes one JSON object to `path`, replacing an existing file. Errors: any error of OutputFile.
  Status Write(const Path& path) const;

 private:
  struct Event {
    Stage stage;
    std::uint64_t number;
    double start_us;
    double duration_us;
  };

  const Clock::time_point begin_;
  mutable Mutex mutex_;
  std::vector<Event> events_ RHIZOME_GUARDED_BY(mutex_);
};

/// Times one stage, and adds it to a trace if there is one.
class StageTimer {
 public:
  StageTimer(StageTrace* trace, Stage stage, std::uint64_t number)
      : trace_(trace), stage_(stage), number_(number), start_(StageTrace::Clock::now()) {}

  /// Ends the stage and returns its duration in seconds.
  double Stop() const {
    const auto end = StageTrace::Clock::now();
    if (trace_ != nullptr) trace_->Add(stage_, number_, start_, end);
    return std::chrono::duration<double>(end - start_).count();
  }

 private:
  StageTrace* const trace_;
  const Stage stage_;
  const std::uint64_t number_;
  const StageTrace::Clock::time_point start_;
};

}  // namespace internal
}  // namespace rhizome
