#include "tools/cli/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tools/cli/text.h"

namespace rhizome {
namespace {

constexpr std::chrono::seconds kBetweenPhases{1};
constexpr std::chrono::seconds kBetweenLines{60};

Status LogError(int error_number, const std::string& path) {
  return Status::FromErrno(error_number, fmt::format("writing to the log '{}'", path));
}

}  // namespace

Result<std::unique_ptr<RunLog>> RunLog::Start(std::string path, std::string_view verb,
                                              std::string_view version,
                                              std::span<const std::string> command) {
  std::unique_ptr<RunLog> log(new RunLog(std::move(path), fmt::format("{}[{}]", verb, ::getpid())));
  std::string words;
  for (const std::string& word : command) words += (words.empty() ? "" : " ") + ShellWord(word);
  RHIZOME_RETURN_IF_ERROR(
      log->Append({.time = std::chrono::system_clock::now(),
                   .level = LogLevel::kInfo,
                   .component = log->component_,
                   .message = "started",
                   .fields = {{"version", std::string(version)}, {"command", std::move(words)}}}));
  return log;
}

void RunLog::Write(LogLevel level, std::string_view message, std::vector<LogField> fields) {
  const Status written = Append({.time = std::chrono::system_clock::now(),
                                 .level = level,
                                 .component = component_,
                                 .message = std::string(message),
                                 .fields = std::move(fields)});
  if (!written.ok() && !failed_.exchange(true))
    fmt::print(stderr, "warning: {}; the run continues\n", written.message());
}

void RunLog::Write(LogLine line) {
  Write(line.level, fmt::format("{}: {}", line.component, line.message), std::move(line.fields));
}

void RunLog::Show(const JobControl::Progress& report) {
  const auto now = Clock::now();
  const bool new_phase = report.phase != phase_;
  if (now - last_shown_ < (new_phase ? kBetweenPhases : kBetweenLines)) return;
  last_shown_ = now;
  phase_ = report.phase;
  std::vector<LogField> fields = {{"phase", std::string(report.phase)},
                                  {"done", static_cast<std::int64_t>(report.done)}};
  if (report.total > 0) fields.push_back({"total", static_cast<std::int64_t>(report.total)});
  if (!report.detail.empty()) fields.push_back({"detail", std::string(report.detail)});
  Write(LogLevel::kInfo, "progress", std::move(fields));
}

void RunLog::End(int exit_code) {
  const std::chrono::duration<double> passed = Clock::now() - start_;
  // Milliseconds, so that the text is short.
  const double seconds = std::round(passed.count() * 1000) / 1000;
  Write(exit_code == 0 ? LogLevel::kInfo : LogLevel::kError, "ended",
        {{"exit_code", std::int64_t{exit_code}}, {"seconds", seconds}});
}

// One call writes the line, so that lines of several processes do not mix.
Status RunLog::Append(const LogLine& line) const {
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return LogError(errno, path_);
  const std::string text = ToText(line) + "\n";
  const ssize_t bytes = ::write(file, text.data(), text.size());
  const int error = bytes < 0 ? errno : ENOSPC;
  ::close(file);
  const bool whole = bytes >= 0 && static_cast<std::size_t>(bytes) == text.size();
  return whole ? Status::Ok() : LogError(error, path_);
}

}  // namespace rhizome
