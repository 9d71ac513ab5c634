#include "index/input/table_writer.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "index/input/timestamp.h"
#include "storage/array/array_facts.h"
#include "storage/base/escaped_text.h"
#include "storage/base/half.h"

namespace rhizome {
namespace {

/// Returns whether a reader of the file would drop blanks around the text.
bool HasOuterBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  return !text.empty() &&
         (kBlanks.find(text.front()) != kBlanks.npos || kBlanks.find(text.back()) != kBlanks.npos);
}

/// Returns whether a CSV field must be quoted.
bool NeedsQuotes(std::string_view text) {
  if (text.empty() || text.starts_with(kByteOrderMark)) return true;
  // A line that begins with # or % may be read as a comment.
  if (HasOuterBlanks(text) || text.front() == '#' || text.front() == '%') return true;
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

void AppendInteger(const ValueForm& form, std::int64_t number, std::string& line) {
  const bool truth = form.dtype == DataType::kBool || form.type == kTypeBool;
  if (form.null && *form.null == number) return;
  if (form.type == kTypeTimestamp)
    line += TimestampText(number);
  else if (truth && (number == 0 || number == 1))
    line += number == 1 ? "true" : "false";
  else
    line += fmt::format_int(number).str();
}

// The sign of NaN has no meaning.
template <typename T>
void AppendFloat(T number, std::string& line) {
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
  if (text.starts_with(kByteOrderMark) || (tabs && HasOuterBlanks(text)) ||
      text.find_first_of(tabs ? "\t\r\n" : "\r\n") != text.npos)
    return Status::InvalidArgument(
        fmt::format("\"{}\" contains {}a line break or a byte order mark, which only a quoted file "
                    "can represent; write a .csv file instead",
                    EscapedText(std::string(text)), tabs ? "a tab, a blank at an end, " : ""));
  line += text;
  return Status::Ok();
}

ValueForm ValueFormOf(const ArrayEntry& entry) {
  return {.dtype = entry.dtype,
          .null = NullOf(entry.attributes),
          .type = std::string(TypeOf(entry.attributes))};
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
      AppendInteger(form, Load<std::int64_t>(value), line);
      break;
    case DataType::kInt32:
      AppendInteger(form, Load<std::int32_t>(value), line);
      break;
    case DataType::kUint32:
      AppendInteger(form, Load<std::uint32_t>(value), line);
      break;
    case DataType::kUint8:
    case DataType::kBool:
      AppendInteger(form, Load<std::uint8_t>(value), line);
      break;
    case DataType::kInt8:
      AppendInteger(form, Load<std::int8_t>(value), line);
      break;
    case DataType::kInt16:
      AppendInteger(form, Load<std::int16_t>(value), line);
      break;
    case DataType::kBfloat16:
      AppendFloat(std::bit_cast<float>(std::uint32_t{Load<std::uint16_t>(value)} << 16), line);
      break;
    case DataType::kFloat64:
      AppendFloat(Load<double>(value), line);
      break;
    case DataType::kInvalid:
      break;
  }
}

}  // namespace rhizome
