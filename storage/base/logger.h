#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/variant.h"

namespace rhizome {

enum class LogLevel : std::uint8_t {
  kDebug,    ///< what a developer of the engine wants to know
  kInfo,     ///< rare events: opened, compacted, a new generation
  kWarning,  ///< goes on, but somebody should look
  kError,    ///< an operation failed in a way that its caller alone cannot mend
};

/// "debug", "info", "warning" or "error".
std::string_view LogLevelName(LogLevel level);

/// One named value of a line.
struct LogField {
  std::string key;
  Variant<std::int64_t, double, std::string> value;
};

/// One event, for programs to read: `component` ("store", "graph", "catalogue") and `message` are
/// constant words, what varies stands in `fields`.
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

/// Where log lines go. Called from one thread that belongs to the store, in order, a little after
/// the event, with no lock of the engine held: a slow callback delays nobody (lines beyond
/// Logger::kMaxWaiting are dropped, and a later line says how many), and one that throws loses
/// only its line. It may call the engine, but must not let go of the last handle of the store
/// whose line it was given.
using LogCallback = std::function<void(const LogLine&)>;

/// Takes lines from any thread and hands them to a callback. Without a callback it is silent and
/// costs a branch. Lines that wait are delivered before the destructor returns; in a forked child
/// all are dropped.
/// Threads: any.
class Logger {
 public:
  static constexpr std::size_t kMaxWaiting = 4096;

  Logger();  ///< silent
  Logger(LogCallback callback, LogLevel least);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  /// Would a line of that level be delivered? For fields that cost something to make.
  bool Wants(LogLevel level) const { return impl_ != nullptr && level >= least_; }

  void Log(LogLevel level, std::string_view component, std::string_view message,
           std::vector<LogField> fields = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  LogLevel least_ = LogLevel::kInfo;
};

}  // namespace rhizome
