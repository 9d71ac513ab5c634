#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/store_options.h"

namespace rhizome {

/// The log file of a run of a verb (--log): lines in the form of ToText, whose component is
/// "VERB[PROCESS]". Every line opens the file and appends, so that the file may be renamed,
/// truncated or removed at any time, and several processes may share it. Threads: any.
class RunLog {
 public:
  /// Creates the file if it is absent, and writes the line "started", with the version and the
  /// command.
  /// Errors: as open(2) and write(2), naming the file.
  static Result<std::unique_ptr<RunLog>> Start(std::string path, std::string_view verb,
                                               std::string_view version,
                                               std::span<const std::string> command);

  /// Appends a line. If that fails, it prints a warning, once; the run continues.
  void Write(LogLevel level, std::string_view message, std::vector<LogField> fields);

  /// Appends a line of the engine, with its component before the message.
  void Write(LogLine line);

  /// Appends a line of progress: when a phase begins, but at most one a second, and then one a
  /// minute.
  /// Threads: one at a time, as JobControl guarantees.
  void Show(const JobControl::Progress& report);

  /// Writes the line "ended", with the exit code and the seconds since Start.
  void End(int exit_code);

 private:
  using Clock = std::chrono::steady_clock;
  RunLog(std::string path, std::string component)
      : path_(std::move(path)), component_(std::move(component)) {}
  Status Append(const LogLine& line) const;

  const std::string path_;
  const std::string component_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<bool> failed_ = false;
  std::string phase_;
  Clock::time_point last_shown_{};
};

}  // namespace rhizome
