#include "index/input/timestamp.h"

#include <fmt/format.h>

#include <chrono>

namespace rhizome {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::microseconds;
using std::chrono::sys_days;
using std::chrono::sys_time;
using std::chrono::year_month_day;

/// Takes pieces from the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool empty() const { return rest_.empty(); }
  char front() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool Take(char expected) {
    if (front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// Takes a digit, or returns -1.
  int Digit() {
    if (front() < '0' || front() > '9') return -1;
    const int digit = front() - '0';
    rest_.remove_prefix(1);
    return digit;
  }

  /// Takes a number of exactly `digits` digits that is at most `max`, or returns -1.
  int Number(int digits, int max) {
    int number = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = Digit();
      if (digit < 0) return -1;
      number = number * 10 + digit;
    }
    return number <= max ? number : -1;
  }

 private:
  std::string_view rest_;
};

std::optional<sys_days> Date(Scanner& text) {
  const int year = text.Number(4, 9999);
  if (year < 1 || !text.Take('-')) return std::nullopt;
  const int month = text.Number(2, 12);
  if (month < 1 || !text.Take('-')) return std::nullopt;
  const int day = text.Number(2, 31);
  const year_month_day date{std::chrono::year(year),
                            std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (day < 1 || !date.ok()) return std::nullopt;
  return sys_days(date);
}

/// Takes the digits of a fraction of a second.
std::optional<microseconds> Fraction(Scanner& text) {
  std::int64_t fraction = 0;
  std::int64_t unit = 100'000;  // microseconds of the next digit
  bool any = false;
  for (int digit = text.Digit(); digit >= 0; digit = text.Digit(), unit /= 10, any = true) {
    if (unit == 0 && digit != 0) return std::nullopt;
    fraction += digit * unit;
  }
  return any ? std::optional(microseconds(fraction)) : std::nullopt;
}

/// Takes hours and minutes, and optionally seconds and a fraction.
std::optional<microseconds> TimeOfDay(Scanner& text) {
  const int hour = text.Number(2, 23);
  if (hour < 0 || !text.Take(':')) return std::nullopt;
  const int minute = text.Number(2, 59);
  if (minute < 0) return std::nullopt;
  microseconds time = std::chrono::hours(hour) + std::chrono::minutes(minute);
  if (!text.Take(':')) return time;
  const int second = text.Number(2, 59);
  if (second < 0) return std::nullopt;
  time += std::chrono::seconds(second);
  if (!text.Take('.') && !text.Take(',')) return time;
  const auto fraction = Fraction(text);
  if (!fraction) return std::nullopt;
  return time + *fraction;
}

/// Takes Z, an offset, or nothing.
std::optional<microseconds> Offset(Scanner& text) {
  if (text.empty() || text.Take('Z') || text.Take('z')) return microseconds(0);
  const bool west = text.front() == '-';
  if (!text.Take('+') && !text.Take('-')) return std::nullopt;
  const int hour = text.Number(2, 23);
  if (hour < 0) return std::nullopt;
  int minute = 0;
  if (!text.empty()) {
    text.Take(':');
    minute = text.Number(2, 59);
    if (minute < 0) return std::nullopt;
  }
  const microseconds offset = std::chrono::hours(hour) + std::chrono::minutes(minute);
  return west ? -offset : offset;
}

}  // namespace

std::optional<std::int64_t> ParseTimestamp(std::string_view text) {
  Scanner scanner(text);
  const auto date = Date(scanner);
  if (!date) return std::nullopt;
  sys_time<microseconds> time = *date;
  if (scanner.empty()) return time.time_since_epoch().count();
  if (!scanner.Take('T') && !scanner.Take('t') && !scanner.Take(' ')) return std::nullopt;
  const auto of_day = TimeOfDay(scanner);
  if (!of_day) return std::nullopt;
  const auto offset = Offset(scanner);
  if (!offset || !scanner.empty()) return std::nullopt;
  return (time + *of_day - *offset).time_since_epoch().count();
}

std::string TimestampText(std::int64_t since_epoch) {
  const sys_time<microseconds> time{microseconds(since_epoch)};
  // floor() of the smallest int64 would overflow within the library.
  constexpr std::int64_t kDay = 86'400'000'000;
  const std::int64_t day = since_epoch / kDay - (since_epoch % kDay < 0 ? 1 : 0);
  constexpr std::int64_t kMaxDay = 3'000'000;  // year 10183
  if (day < -kMaxDay || day > kMaxDay) return std::to_string(since_epoch);
  const year_month_day date{sys_days(days(day))};
  const int year = static_cast<int>(date.year());
  if (year < 1 || year > 9999) return std::to_string(since_epoch);
  const std::int64_t of_day = (time - sys_days(days(day))).count();
  std::string text =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", year, static_cast<unsigned>(date.month()),
                  static_cast<unsigned>(date.day()), of_day / 3'600'000'000,
                  of_day / 60'000'000 % 60, of_day / 1'000'000 % 60);
  if (const std::int64_t fraction = of_day % 1'000'000; fraction % 1000 != 0)
    text += fmt::format(".{:06}", fraction);
  else if (fraction != 0)
    text += fmt::format(".{:03}", fraction / 1000);
  return text + 'Z';
}

}  // namespace rhizome
