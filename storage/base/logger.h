#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/store_options.h"

namespace RHIZOME_API rhizome {

/// Accepts lines from any thread and passes them to a callback. Without a callback, logging costs
/// one branch. The destructor delivers the queued lines; a forked child drops all lines. Threads:
/// any.
class Logger {
 public:
  /// Max number of queued lines, a bound on their memory.
  static constexpr std::size_t kMaxWaiting = 4096;

  Logger();  ///< silent
  Logger(LogCallback callback, LogLevel least);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  /// Returns whether a line of this level would be delivered. Check before computing expensive
  /// fields.
  bool Wants(LogLevel level) const { return impl_ != nullptr && level >= least_; }

  void Log(LogLevel level, std::string_view component, std::string_view message,
           std::vector<LogField> fields = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  LogLevel least_ = LogLevel::kInfo;
};

}  // namespace rhizome
