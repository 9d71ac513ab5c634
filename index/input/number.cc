#include "index/input/number.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>

#include "storage/base/mutant.h"

namespace rhizome {

std::optional<float> ParseFiniteFloat(std::string_view text) {
  float value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = fast_float::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool VanishesInFloat32(double number) { return number != 0 && static_cast<float>(number) == 0; }

bool VanishesInFloat32(std::string_view text) {
  const auto number = ParseFiniteFloat(text);
  if (!number || *number != 0) return false;
  const std::string_view digits = text.substr(0, text.find_first_of("eE"));
  return digits.find_first_of("123456789") != digits.npos;
}

namespace {

bool IsRounded(std::int64_t value) {
  // Every integer up to this one is exact as a float32.
  constexpr std::int64_t kExact = std::int64_t{1} << 24;
  return value < -kExact || value > kExact;
}

bool IsBeyondInt64(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc::result_out_of_range && stop == end;
}

}  // namespace

std::optional<std::string> NumberColumn::Refuse(std::string_view field, std::string_view name,
                                                std::optional<std::int64_t> integer) const {
  if (RHIZOME_MUTANT("integers beyond their type are rounded")) return std::nullopt;
  if (!integer && IsBeyondInt64(field))
    return fmt::format("'{}' in the column '{}' is an integer beyond int64", field, name);
  if (!integer && VanishesInFloat32(field))
    return fmt::format("'{}' in the column '{}' {}", field, name, kVanishes);
  const bool floats = floats_ || !integer;
  const bool rounds = rounds_ || (integer && IsRounded(*integer));
  if (!floats || !rounds) return std::nullopt;
  return fmt::format(
      "'{}': the column '{}' has integers that float32 would round, and also numbers that are not "
      "integers; write all of them as integers, or all with a decimal point",
      field, name);
}

void NumberColumn::Keep(std::optional<std::int64_t> integer) {
  floats_ = floats_ || !integer;
  rounds_ = rounds_ || (integer && IsRounded(*integer));
}

}  // namespace rhizome
