#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/variant.h"

namespace RHIZOME_API rhizome {

enum class LogLevel : std::uint8_t {
  kDebug,    ///< details for developers of the engine
  kInfo,     ///< rare events: opened, compacted, a new generation
  kWarning,  ///< the operation goes on, but the user should look at this
  kError,    ///< an operation failed in a way that its caller alone cannot mend
};

/// "debug", "info", "warning" or "error".
std::string_view LogLevelName(LogLevel level);

/// One named value of a line.
struct LogField {
  std::string key;
  Variant<std::int64_t, double, std::string> value;
};

/// One event in a form that programs can read: `component` ("store", "graph", "catalogue") and
/// `message` are constant texts, and `fields` holds the values that vary.
struct LogLine {
  std::chrono::system_clock::time_point time;
  LogLevel level = LogLevel::kInfo;
  std::string component;
  std::string message;
  std::vector<LogField> fields;
};

/// "2026-11-22T03:34:25.120Z info store: opened generation=3 path=\"a b.rz\"": values that are
/// empty or hold blanks, quotes or control characters are quoted as in JSON.
std::string ToText(const LogLine& line);

/// Receives log lines. The logger calls it from one thread of its own, in order, a little after the
/// event, with no lock of the engine held. A slow callback delays nobody (lines beyond
/// Logger::kMaxWaiting are dropped, and a later line says how many); one that throws loses only its
/// line. It may call the engine, but must not release the last handle of the store whose line it
/// was given.
using LogCallback = std::function<void(const LogLine&)>;

/// Takes lines from any thread and hands them to a callback. Without a callback, logging costs a
/// branch. The destructor delivers the lines that wait; a forked child drops all lines.
/// Threads: any.
class Logger {
 public:
  /// The most lines that wait for the callback, a bound on their memory.
  static constexpr std::size_t kMaxWaiting = 4096;

  Logger();  ///< silent
  Logger(LogCallback callback, LogLevel least);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  /// Returns whether a line of that level would be delivered. Ask before making costly fields.
  bool Wants(LogLevel level) const { return impl_ != nullptr && level >= least_; }

  void Log(LogLevel level, std::string_view component, std::string_view message,
           std::vector<LogField> fields = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  LogLevel least_ = LogLevel::kInfo;
};

}  // namespace rhizome
