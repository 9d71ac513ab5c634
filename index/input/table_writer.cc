#include "index/input/table_writer.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

#include "storage/array/array_facts.h"
#include "storage/base/escaped_text.h"
#include "storage/base/half.h"

namespace rhizome {
namespace {

/// UTF-8 byte order mark. Readers skip it at the beginning of a file, so a text that begins with it
/// would lose it if it came first.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

/// Returns whether a CSV field must be quoted.
bool NeedsQuotes(std::string_view text) {
  if (text.empty() || text.starts_with(kByteOrderMark)) return true;
  if (IsBlank(text.front()) || IsBlank(text.back())) return true;
  if (text.front() == '#' || text.front() == '%') return true;
  return text.find_first_of(",\"\r\n") != text.npos;
}

void AppendQuoted(std::string_view text, std::string& line) {
  line += '"';
  for (const char byte : text) {
    if (byte == '"') line += '"';
    line += byte;
  }
  line += '"';
}

template <typename T>
T Load(std::span<const std::byte> value) {
  T number;
  std::memcpy(&number, value.data(), sizeof(number));
  return number;
}

template <typename T>
void AppendInteger(const ValueForm& form, std::span<const std::byte> value, std::string& line) {
  const T number = Load<T>(value);
  if (form.null && *form.null == static_cast<std::int64_t>(number)) return;
  fmt::format_to(std::back_inserter(line), "{}", number);
}

// The sign of NaN has no meaning.
void AppendDouble(double number, std::string& line) {
  if (std::isnan(number))
    line += "nan";
  else
    fmt::format_to(std::back_inserter(line), "{}", number);
}
void AppendFloat(float number, std::string& line) {
  if (std::isnan(number))
    line += "nan";
  else
    fmt::format_to(std::back_inserter(line), "{}", number);
}

}  // namespace

Status AppendField(std::string_view text, TableForm form, std::string& line) {
  if (form == TableForm::kCsv) {
    if (NeedsQuotes(text))
      AppendQuoted(text, line);
    else
      line += text;
    return Status::Ok();
  }
  const bool tabs = form == TableForm::kTabs;
  if (text.starts_with(kByteOrderMark) || text.find_first_of(tabs ? "\t\r\n" : "\r\n") != text.npos)
    return Status::InvalidArgument(
        fmt::format("\"{}\" contains {}a line break or a byte order mark, which only a quoted file "
                    "can represent; write a .csv file instead",
                    EscapedText(std::string(text)), tabs ? "a tab, " : ""));
  line += text;
  return Status::Ok();
}

ValueForm ValueFormOf(const ArrayEntry& entry) {
  ValueForm form{.dtype = entry.dtype};
  for (const auto& [key, value] : entry.attributes) {
    std::int64_t null = 0;
    if (key != kNullAttribute) continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), null);
    if (error == std::errc() && end == value.data() + value.size()) form.null = null;
  }
  return form;
}

void AppendValue(const ValueForm& form, std::span<const std::byte> value, std::string& line) {
  switch (form.dtype) {
    case DataType::kFloat32:
      AppendFloat(Load<float>(value), line);
      break;
    case DataType::kFloat16:
      AppendFloat(HalfToFloat(Load<std::uint16_t>(value)), line);
      break;
    case DataType::kInt64:
      AppendInteger<std::int64_t>(form, value, line);
      break;
    case DataType::kInt32:
      AppendInteger<std::int32_t>(form, value, line);
      break;
    case DataType::kUint32:
      AppendInteger<std::uint32_t>(form, value, line);
      break;
    case DataType::kUint8:
    case DataType::kBool:
      AppendInteger<std::uint8_t>(form, value, line);
      break;
    case DataType::kInt8:
      AppendInteger<std::int8_t>(form, value, line);
      break;
    case DataType::kInt16:
      AppendInteger<std::int16_t>(form, value, line);
      break;
    case DataType::kBfloat16:
      AppendFloat(std::bit_cast<float>(std::uint32_t{Load<std::uint16_t>(value)} << 16), line);
      break;
    case DataType::kFloat64:
      AppendDouble(Load<double>(value), line);
      break;
    case DataType::kInvalid:
      break;
  }
}

}  // namespace rhizome
