#include "storage/base/logger.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "storage/base/escaped_text.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/base/process.h"
#include "storage/base/threads.h"

namespace rhizome {
namespace {

bool NeedsQuotes(const std::string& text) {
  return text.empty() || text.find_first_of(" \"=\\") != text.npos || EscapedText(text) != text;
}

std::string Quoted(const std::string& text) {
  if (!NeedsQuotes(text)) return text;
  // JSON leaves DEL, C1 controls and invisible characters unescaped.
  return EscapedText(
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string ValueText(const LogField& field) {
  if (const auto* integer = std::get_if<std::int64_t>(&field.value))
    return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&field.value)) return fmt::format("{}", *number);
  return Quoted(std::get<std::string>(field.value));
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    default:
      return "error";
  }
}

std::string ToText(const LogLine& line) {
  const auto milliseconds =
      std::chrono::floor<std::chrono::milliseconds>(line.time).time_since_epoch().count();
  const std::time_t seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::string text =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z {} {}: {}", fmt::gmtime(seconds),
                  milliseconds % 1000, LogLevelName(line.level), line.component, line.message);
  for (const LogField& field : line.fields) text += " " + field.key + "=" + ValueText(field);
  return text;
}

/// A queue of lines and one worker thread. Push appends a line and wakes the worker; Deliver takes
/// all queued lines at once and calls the callback for each, then reports how many were dropped.
///
/// Invariant: only the worker calls the callback, and never while it holds the mutex. (If the
/// system granted no thread, Stop calls it.)
class Logger::Impl {
 public:
  explicit Impl(LogCallback callback) : callback_(std::move(callback)) { StartWorker(); }

  // Delivers the queued lines, then ends the worker.
  void Stop() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    arrived_.NotifyOne();
    static_cast<void>(worker_.Join());
    Deliver();  // in case no thread was ever started
  }

  /// Queues the line that `make` returns. If memory is too short for the line, it counts as
  /// dropped.
  template <typename Make>
  void Push(const Make& make) noexcept RHIZOME_EXCLUDES(mutex_) {
    const Status kept = Guarded([&] { return TryPush(make()); });
    if (!kept.ok()) {
      const MutexLock lock(mutex_);
      ++dropped_;
    }
  }

  bool of_this_process() const { return process_.here(); }

 private:
  // If the system grants no thread now, the next line tries again.
  void StartWorker() {
    if (!worker_.started())
      static_cast<void>(worker_.Start([this] {
        Deliver();
        return Status::Ok();
      }));
  }

  Status TryPush(LogLine line) RHIZOME_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (waiting_.size() >= kMaxWaiting)
        ++dropped_;
      else
        waiting_.push_back(std::move(line));
      StartWorker();
    }
    arrived_.NotifyOne();
    return Status::Ok();
  }

  // If memory is short, the lines that were taken out of the queue are lost; later ones are
  // delivered.
  void Deliver() RHIZOME_EXCLUDES(mutex_) {
    while (!Guarded([&]() -> Status {
              DeliverAll();
              return Status::Ok();
            }).ok()) {
    }
  }

  void DeliverAll() RHIZOME_EXCLUDES(mutex_) {
    while (true) {
      std::vector<LogLine> lines;
      std::uint64_t dropped = 0;
      {
        const MutexLock lock(mutex_);
        while (waiting_.empty() && !stopping_) arrived_.Wait(mutex_);
        if (waiting_.empty()) return;
        lines.swap(waiting_);
        dropped = std::exchange(dropped_, 0);
      }
      for (const LogLine& line : lines) Call(line);
      if (dropped == 0) continue;
      Call({.time = std::chrono::system_clock::now(),
            .level = LogLevel::kWarning,
            .component = "log",
            .message = "lines were dropped because the callback is too slow",
            .fields = {{"lines", static_cast<std::int64_t>(dropped)}}});
    }
  }

  void Call(const LogLine& line) const {
    try {
      callback_(line);
    } catch (...) {  // no caller on the logger's thread could handle an exception of the callback
    }
  }

  const OwnerProcess process_;
  const LogCallback callback_;
  Mutex mutex_;
  CondVar arrived_;
  std::vector<LogLine> waiting_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t dropped_ RHIZOME_GUARDED_BY(mutex_) = 0;
  bool stopping_ RHIZOME_GUARDED_BY(mutex_) = false;
  Thread worker_;  // last, because it uses all other members; started under mutex_
};

Logger::Logger() = default;
Logger::Logger(LogCallback callback, LogLevel least)
    : impl_(callback ? std::make_unique<Impl>(std::move(callback)) : nullptr), least_(least) {}

Logger::~Logger() {
  if (impl_ == nullptr) return;
  // A forked child does not have the worker, so the object must not be touched there.
  if (!impl_->of_this_process()) {
    static_cast<void>(impl_.release());
    return;
  }
  impl_->Stop();
}

void Logger::Log(LogLevel level, std::string_view component, std::string_view message,
                 std::vector<LogField> fields) const {
  if (!Wants(level) || !impl_->of_this_process()) return;
  impl_->Push([&] {
    return LogLine{.time = std::chrono::system_clock::now(),
                   .level = level,
                   .component = std::string(component),
                   .message = std::string(message),
                   .fields = std::move(fields)};
  });
}

}  // namespace rhizome
