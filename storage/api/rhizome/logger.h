#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/variant.h"

namespace RHIZOME_API rhizome {

enum class LogLevel : std::uint8_t {
  kDebug,    ///< details for developers of the engine
  kInfo,     ///< rare events: opened, compacted, a new generation
  kWarning,  ///< the operation continues, but the user should investigate
  kError,    ///< an operation failed in a way that its caller alone cannot repair
};

/// Returns "debug", "info", "warning" or "error".
std::string_view LogLevelName(LogLevel level);

/// One named value of a log line.
struct LogField {
  std::string key;
  Variant<std::int64_t, double, std::string> value;
};

/// One event in machine-readable form. `component` ("store", "graph", "catalogue") and `message`
/// are constant texts; `fields` holds the values that vary.
struct LogLine {
  std::chrono::system_clock::time_point time;
  LogLevel level = LogLevel::kInfo;
  std::string component;
  std::string message;
  std::vector<LogField> fields;
};

/// Formats a line as "2026-11-22T03:34:25.120Z info store: opened generation=3 path=\"a b.rz\"".
/// Values that are empty or contain blanks, quotes or control characters are quoted as in JSON.
std::string ToText(const LogLine& line);

/// Receives log lines. The logger calls it from its own thread, in order, shortly after the event
/// and without holding a lock of the engine. A slow callback delays no operation: if more than
/// Logger::kMaxWaiting lines are queued, further lines are dropped, and a later line reports their
/// number. A callback that throws loses only the current line. It may call the engine, but must not
/// release the last handle of the store that the line comes from.
using LogCallback = std::function<void(const LogLine&)>;

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
