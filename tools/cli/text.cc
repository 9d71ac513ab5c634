#include "tools/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace rhizome {

std::string WithCommas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

std::string HumanCount(double number) {
  constexpr std::array<const char*, 5> kUnits = {"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  while (std::abs(number) >= 1000 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f}", number);
  return fmt::format("{:.{}f}{}", number, number < 10 ? 2 : 1, kUnits[unit]);
}

std::string HumanBytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double number = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (number >= 1024 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.1f} {}", number, kUnits[unit]);
}

std::string HumanSeconds(double seconds) {
  if (seconds < 0.01) return fmt::format("{:.1f} ms", seconds * 1000);
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string HumanClock(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::min(std::max(seconds, 0.0), 3.6e8));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string Plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", WithCommas(count), noun, count == 1 ? "" : "s");
}

std::string ShellWord(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return std::string(word);
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

namespace {
bool ContinuesCodePoint(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }
}  // namespace

std::size_t DisplayWidth(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return !ContinuesCodePoint(c); }));
}

std::string Shorten(std::string_view utf8, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    if (ContinuesCodePoint(utf8[i])) continue;
    if (width++ == columns) return std::string(utf8.substr(0, i));
  }
  return std::string(utf8);
}

std::string TextTable::ToString(std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], DisplayWidth(row[c]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent);
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - DisplayWidth(row[c]), ' ');
      const bool right = std::find(right_.begin(), right_.end(), c) != right_.end();
      line += (c == 0 ? "" : "  ") + (right ? blanks + row[c] : row[c] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace rhizome
