#include "index/input/number.h"

#include <fast_float/fast_float.h>

#include <cmath>
#include <cstring>
#include <system_error>

#include "index/base/value_list.h"
#include "index/input/convert.h"
#include "rhizome/graph_types.h"

namespace rhizome {
namespace {

bool IsZeroText(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find_first_of("eE"));
  return digits.find_first_of("123456789") == digits.npos;
}

template <typename T>
bool Store(T value, std::span<std::byte> out) {
  std::memcpy(out.data(), &value, sizeof(T));
  return true;
}

bool ParseInteger(DataType dtype, std::string_view text, std::span<std::byte> out) {
  const auto integer = ParseCanonicalInteger(text);
  return integer && !ConvertElements(DataType::kInt64, std::as_bytes(std::span(&*integer, 1)),
                                     dtype, out.first(DataTypeBytes(dtype)));
}

}  // namespace

std::optional<float> ParseFiniteFloat(std::string_view text) {
  float value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = fast_float::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = fast_float::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (value == 0 && !IsZeroText(text)) return std::nullopt;
  // An infinite value is either the word, or a number that float64 cannot hold.
  if (std::isinf(value) && text.find_first_of("0123456789") != text.npos) return std::nullopt;
  return value;
}

bool IsDecimal(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = fast_float::from_chars(text.data(), end, value);
  return error != std::errc::invalid_argument && stop == end;
}

bool KeepsDecimal(double number) {
  const auto narrow = static_cast<float>(number);
  if (!std::isfinite(number)) return true;
  return std::isfinite(narrow) && DecimalOf(narrow) == number;
}

std::optional<std::string_view> LostInFloat32(double number) {
  const auto narrow = static_cast<float>(number);
  if (!std::isfinite(number)) return std::nullopt;
  if (std::isinf(narrow)) return "is beyond float32; use float64";
  if (VanishesInFloat32(number)) return kVanishes;
  const bool whole = std::floor(number) == number && std::fabs(number) <= 0x1p53;
  if (whole && double{narrow} != number)
    return "is an integer that float32 would round; use float64 or integers";
  return std::nullopt;
}

bool VanishesInFloat32(double number) { return number != 0 && static_cast<float>(number) == 0; }

bool VanishesInFloat32(std::string_view text) {
  const auto number = ParseFiniteFloat(text);
  return number && *number == 0 && !IsZeroText(text);
}

bool ParseElement(DataType dtype, std::string_view text, std::span<std::byte> out) {
  if (dtype == DataType::kBool)
    if (const auto word = ParseBool(text)) return Store(*word, out);
  if (!IsFloat(dtype)) return ParseInteger(dtype, text, out);
  if (dtype == DataType::kFloat32) {
    // Rounding to float64 first could round twice.
    if (const auto number = ParseFiniteFloat(text)) return Store(*number, out);
  }
  const auto number = ParseDouble(text);
  return number && !ConvertElements(DataType::kFloat64, std::as_bytes(std::span(&*number, 1)),
                                    dtype, out.first(DataTypeBytes(dtype)));
}

std::optional<bool> ParseBool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

bool IsNullWord(std::string_view text) {
  return text.empty() || text == "null" || text == "NULL" || text == "NA";
}

}  // namespace rhizome
