#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "rhizome/job_control.h"

namespace rhizome {

/// How progress is shown.
enum class ProgressStyle : std::uint8_t {
  kNone,
  kBar,    ///< one line, redrawn in place, for a terminal
  kPlain,  ///< a line every few seconds, for logs
  kJson,   ///< one JSON object per line, for programs
};

/// Shows the reports of a JobControl on a stream: phase, share done, rate and time left. Redraws at
/// most ten times per second and prints nothing during the first quarter of a second, so that short
/// jobs show no progress.
/// Threads: one at a time, as JobControl guarantees.
class ProgressPrinter {
 public:
  ProgressPrinter(ProgressStyle style, std::FILE* out);
  ~ProgressPrinter() { Clear(); }
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void Show(const JobControl::Progress& report);

  /// Prints the memory that the process used before the job started. A job's --memory limit does
  /// not include it.
  void ShowMemory(std::uint64_t base_bytes, std::uint64_t limit_bytes);

  /// Removes the bar, so that something else can be printed.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  void ShowBar(const JobControl::Progress& report, double seconds);
  void ShowPlain(const JobControl::Progress& report, double seconds);
  void ShowJson(const JobControl::Progress& report, double seconds);

  const ProgressStyle style_;
  std::FILE* const out_;
  const bool utf8_;
  const Clock::time_point start_ = Clock::now();
  std::string phase_;
  Clock::time_point phase_start_ = start_;
  std::uint64_t phase_first_ = 0;  // `done` when the phase began; above 0 for a resumed job
  Clock::time_point last_shown_{};
  bool bar_shown_ = false;
};

}  // namespace rhizome
