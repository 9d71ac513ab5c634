#include "tools/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "storage/base/escaped_text.h"
#include "tools/cli/text.h"

namespace rhizome {
namespace {

constexpr double kSilentSeconds = 0.25;
constexpr double kBarSeconds = 0.1;
constexpr double kPlainSeconds = 5;
constexpr double kJsonSeconds = 0.5;

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread sets it
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

std::size_t TerminalColumns(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

/// Returns "1.2 M/s, 0:12 left", as far as rate and remaining time are known.
std::string RateText(const JobControl::Progress& report, std::uint64_t first, double seconds) {
  if (seconds < 0.2 || report.done <= first) return {};
  const double rate = static_cast<double>(report.done - first) / seconds;
  std::string text = HumanCount(rate) + "/s";
  if (report.total > report.done) {
    const double left = static_cast<double>(report.total - report.done) / rate;
    text += ", " + HumanClock(left) + " left";
  }
  return text;
}

double Share(const JobControl::Progress& report) {
  if (report.total == 0) return 0;
  return std::min(1.0, static_cast<double>(report.done) / static_cast<double>(report.total));
}

}  // namespace

ProgressPrinter::ProgressPrinter(ProgressStyle style, std::FILE* out)
    : style_(style), out_(out), utf8_(LocaleIsUtf8()) {}

void ProgressPrinter::Show(const JobControl::Progress& report) {
  if (style_ == ProgressStyle::kNone) return;
  const auto now = Clock::now();
  const auto since = [now](Clock::time_point then) {
    return std::chrono::duration<double>(now - then).count();
  };
  const bool new_phase = report.phase != phase_;
  if (new_phase) {
    phase_ = report.phase;
    phase_start_ = now;
    phase_first_ = report.done;
  }
  const double pause = style_ == ProgressStyle::kBar     ? kBarSeconds
                       : style_ == ProgressStyle::kPlain ? kPlainSeconds
                                                         : kJsonSeconds;
  // A log shows every phase once. The bar skips phases that last a few milliseconds, so that it
  // does not flicker.
  const bool announce = new_phase && style_ != ProgressStyle::kBar;
  if (!announce && (since(last_shown_) < pause || since(start_) < kSilentSeconds)) return;
  last_shown_ = now;
  const double seconds = since(phase_start_);
  if (style_ == ProgressStyle::kBar) ShowBar(report, seconds);
  if (style_ == ProgressStyle::kPlain) ShowPlain(report, seconds);
  if (style_ == ProgressStyle::kJson) ShowJson(report, seconds);
}

void ProgressPrinter::ShowBar(const JobControl::Progress& report, double seconds) {
  constexpr std::size_t kCells = 24;
  std::string line = fmt::format("{:<22} ", EscapedText(std::string(report.phase)));
  if (report.total > 0) {
    const auto full = static_cast<std::size_t>(Share(report) * kCells);
    for (std::size_t i = 0; i < kCells; ++i) {
      line += i < full ? (utf8_ ? "█" : "#") : (utf8_ ? "░" : ".");
    }
    line += fmt::format(" {:3.0f} %  ", std::floor(100 * Share(report)));
  } else {
    line += HumanCount(static_cast<double>(report.done)) + "  ";
  }
  line += RateText(report, phase_first_, seconds);
  if (!report.detail.empty()) line += "  " + EscapedText(std::string(report.detail));
  std::fprintf(out_, "\r\033[K%s", Shorten(line, TerminalColumns(out_) - 1).c_str());
  std::fflush(out_);
  bar_shown_ = true;
}

void ProgressPrinter::ShowPlain(const JobControl::Progress& report, double seconds) {
  std::string line = EscapedText(std::string(report.phase));
  if (report.total > 0 && report.done > 0) line += fmt::format(" {:.0f} %", 100 * Share(report));
  const std::string rate = RateText(report, phase_first_, seconds);
  if (!rate.empty()) line += " (" + rate + ")";
  if (!report.detail.empty()) line += " " + EscapedText(std::string(report.detail));
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
}

void ProgressPrinter::ShowJson(const JobControl::Progress& report, double seconds) {
  nlohmann::ordered_json line = {{"phase", report.phase},
                                 {"done", report.done},
                                 {"total", report.total},
                                 {"seconds", seconds}};
  if (!report.detail.empty()) line["detail"] = report.detail;
  using Handler = nlohmann::ordered_json::error_handler_t;
  std::fprintf(out_, "%s\n", line.dump(-1, ' ', false, Handler::replace).c_str());
  std::fflush(out_);
}

void ProgressPrinter::ShowMemory(std::uint64_t base_bytes, std::uint64_t limit_bytes) {
  if (style_ == ProgressStyle::kNone) return;
  Clear();
  if (style_ == ProgressStyle::kJson) {
    const nlohmann::ordered_json line = {{"base_memory_bytes", base_bytes},
                                         {"memory_bytes", limit_bytes}};
    std::fprintf(out_, "%s\n", line.dump().c_str());
  } else {
    std::fprintf(out_, "memory limit: %s beyond the %s of the process at start\n",
                 HumanBytes(limit_bytes).c_str(), HumanBytes(base_bytes).c_str());
  }
  std::fflush(out_);
}

void ProgressPrinter::Clear() {
  if (!bar_shown_) return;
  std::fprintf(out_, "\r\033[K");
  std::fflush(out_);
  bar_shown_ = false;
}

}  // namespace rhizome
