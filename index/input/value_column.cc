// The type of a text column. Stage parses a field (Parse) and computes the state of the column with
// it, by the given type (StageGiven) or by inference; Keep widens the list if the state requires
// it, and adds the value.

#include "index/input/value_column.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "index/input/convert.h"
#include "index/input/number.h"
#include "index/input/timestamp.h"
#include "rhizome/graph_types.h"
#include "storage/array/array_facts.h"
#include "storage/base/escaped_text.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::array kTypes = {DataType::kBool,   DataType::kInt8,    DataType::kInt16,
                               DataType::kInt32,  DataType::kInt64,   DataType::kUint8,
                               DataType::kUint32, DataType::kFloat32, DataType::kFloat64};

bool IsBeyondInt64(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc::result_out_of_range && stop == end;
}

/// Returns the smallest value of an integer type, or the largest of an unsigned one.
std::int64_t FirstCandidate(DataType dtype) {
  switch (dtype) {
    case DataType::kInt8:
      return std::numeric_limits<std::int8_t>::min();
    case DataType::kInt16:
      return std::numeric_limits<std::int16_t>::min();
    case DataType::kInt32:
      return std::numeric_limits<std::int32_t>::min();
    case DataType::kUint8:
      return std::numeric_limits<std::uint8_t>::max();
    case DataType::kUint32:
      return std::numeric_limits<std::uint32_t>::max();
    case DataType::kBool:
      return -1;
    default:
      return std::numeric_limits<std::int64_t>::min();
  }
}

/// Returns an integer of a decimal such as 3.0, if it is one that float64 holds exactly.
std::optional<std::int64_t> IntegerOf(double number) {
  if (std::floor(number) != number || std::fabs(number) > 0x1p53) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

/// Returns whether a decimal has so few digits that float32 keeps it. Six digits are always kept,
/// except for numbers near the limits of float32.
bool IsShort(std::string_view decimal) {
  constexpr std::size_t kMaxLength = 24;
  if (decimal.size() > kMaxLength) return false;
  int digits = 0;
  for (const char letter : decimal) {
    if (letter == 'e' || letter == 'E') return false;
    const bool counts =
        digits > 0 ? letter >= '0' && letter <= '9' : letter >= '1' && letter <= '9';
    digits += counts ? 1 : 0;
  }
  return digits <= 6;
}

bool FitsInteger(std::int64_t value, DataType dtype) {
  std::array<std::byte, 8> out{};
  return !ConvertElements(DataType::kInt64, std::as_bytes(std::span(&value, 1)), dtype, out);
}

}  // namespace

std::optional<GivenType> ParseColumnType(std::string_view name) {
  if (name == kTypeTimestamp) return GivenType{.dtype = DataType::kInt64, .is_timestamp = true};
  if (name == kTypeText) return GivenType{.dtype = DataType::kInt64, .is_text = true};
  for (const DataType dtype : kTypes)
    if (name == DataTypeName(dtype)) return GivenType{.dtype = dtype};
  return std::nullopt;
}

std::string ColumnTypeNames() {
  std::string names;
  for (const DataType dtype : kTypes) names += fmt::format("{}, ", DataTypeName(dtype));
  return fmt::format("{}{}, {}", names, kTypeTimestamp, kTypeText);
}

Result<std::optional<GivenType>> ColumnTypeOf(const std::map<std::string, std::string>& types,
                                              const std::string& column) {
  const auto given = types.find(column);
  if (given == types.end()) return std::optional<GivenType>();
  if (const auto type = ParseColumnType(given->second)) return type;
  return Fail(Status::InvalidArgument(
      fmt::format("`types`: '{}' of the column '{}' is not a type; types are {}", given->second,
                  column, ColumnTypeNames())));
}

NullChoice::NullChoice(DataType dtype)
    : first_(FirstCandidate(dtype)),
      step_(dtype == DataType::kUint8 || dtype == DataType::kUint32 ? -1 : 1) {}

void NullChoice::Note(std::int64_t value) {
  // The difference is small for candidates; for others it may wrap.
  const std::uint64_t away =
      step_ > 0 ? static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(first_)
                : static_cast<std::uint64_t>(first_) - static_cast<std::uint64_t>(value);
  if (away < kCandidates) occurs_.set(away);
}

std::optional<std::int64_t> NullChoice::value() const {
  for (std::size_t i = 0; i < kCandidates; ++i)
    if (!occurs_.test(i)) return first_ + step_ * static_cast<std::int64_t>(i);
  return std::nullopt;
}

ValueColumn::ValueColumn(std::optional<GivenType> type)
    : type_(type),
      state_{.null = NullChoice(type ? type->dtype : DataType::kInt64)},
      next_(state_) {}

std::optional<ValueColumn::Field> ValueColumn::Parse(std::string_view field) {
  Field parsed;
  if (IsNullWord(field)) return parsed;
  if (const auto integer = ParseCanonicalInteger(field)) {
    parsed.kind = Field::Kind::kInteger;
    parsed.integer = *integer;
    return parsed;
  }
  if (const auto number = ParseDouble(field)) {
    parsed.kind = std::isnan(*number) ? Field::Kind::kNull : Field::Kind::kDecimal;
    parsed.number = *number;
    return parsed;
  }
  if (const auto value = ParseBool(field)) {
    parsed.kind = Field::Kind::kBool;
    parsed.integer = *value ? 1 : 0;
    return parsed;
  }
  const auto time = ParseTimestamp(field);
  if (!time) return std::nullopt;
  parsed.kind = Field::Kind::kTimestamp;
  parsed.integer = *time;
  return parsed;
}

std::optional<std::string> ValueColumn::Stage(std::string_view field, std::string_view name) {
  const auto parsed = Parse(field);
  next_ = state_;
  staged_ = parsed.value_or(Field());
  if (parsed && parsed->kind == Field::Kind::kNull) {
    next_.nulls = true;
    return CheckNull(name);
  }
  if (type_) return StageGiven(field, name);
  if (!parsed) {
    if (IsDecimal(field))
      return fmt::format("'{}' in the column '{}' is beyond float64", field, name);
    return fmt::format(
        "'{}' in the column '{}' is not a number, true or false, or a date (2024-05-01); name the "
        "column '-' to skip it",
        field, name);
  }
  next_.kind = parsed->kind == Field::Kind::kBool        ? Kind::kBools
               : parsed->kind == Field::Kind::kTimestamp ? Kind::kTimestamps
                                                         : Kind::kNumbers;
  if (state_.kind != Kind::kNothing && state_.kind != next_.kind) {
    constexpr std::array<std::string_view, 4> kHas = {"nulls", "numbers", "true and false",
                                                      "dates or times"};
    return fmt::format(
        "'{}': the column '{}' has {} in the lines before; write all values in the same way, or "
        "name the "
        "column '-' to skip it",
        field, name, kHas[static_cast<std::size_t>(state_.kind)]);
  }
  return StageNumber(field, name);
}

std::optional<std::string> ValueColumn::StageNumber(std::string_view field, std::string_view name) {
  if (staged_.kind != Field::Kind::kDecimal) {
    next_.null.Note(staged_.integer);
    next_.wide = next_.wide || !IsExact(staged_.integer, DataType::kFloat32);
    next_.rounds = next_.rounds || !IsExact(staged_.integer, DataType::kFloat64);
    if (const auto reason = CheckNull(name)) return reason;
  } else if (IsBeyondInt64(field)) {
    return fmt::format("'{}' in the column '{}' is an integer beyond int64", field, name);
  } else {
    next_.decimals = true;
    next_.wide = next_.wide || !(IsShort(field) || KeepsDecimal(staged_.number));
  }
  if (next_.wide && !state_.wide) wide_field_ = field;
  if (!next_.decimals || !next_.rounds) return std::nullopt;
  if (RHIZOME_MUTANT("integers beyond their type are rounded")) return std::nullopt;
  return fmt::format(
      "'{}': the column '{}' has integers that float64 would round, and also numbers that are not "
      "integers; write all of them as integers",
      field, name);
}

// The value must be one of the given type. Decimals are rounded to float32 or float64, because the
// user asked for it.
std::optional<std::string> ValueColumn::StageGiven(std::string_view field, std::string_view name) {
  const DataType dtype = type_->dtype;
  const std::string_view type_name = type_->is_timestamp ? kTypeTimestamp : DataTypeName(dtype);
  const auto refuse = [&] {
    return fmt::format("'{}' in the column '{}' is not a value of {}, the type of the column",
                       field, name, type_name);
  };
  next_.kind = type_->is_timestamp        ? Kind::kTimestamps
               : dtype == DataType::kBool ? Kind::kBools
                                          : Kind::kNumbers;
  if (type_->is_timestamp) {
    if (staged_.kind != Field::Kind::kTimestamp) return refuse();
    next_.null.Note(staged_.integer);
    return CheckNull(name);
  }
  if (IsFloat(dtype)) {
    std::array<std::byte, 8> out{};
    const bool number =
        staged_.kind == Field::Kind::kInteger || staged_.kind == Field::Kind::kDecimal;
    if (!number || !ParseElement(dtype, field, out)) return refuse();
    if (staged_.kind == Field::Kind::kInteger && !IsExact(staged_.integer, dtype)) return refuse();
    if (dtype == DataType::kFloat64) return std::nullopt;
    if (VanishesInFloat32(field))
      return fmt::format("'{}' in the column '{}' {}", field, name, kVanishes);
    float narrow = 0;
    std::memcpy(&narrow, out.data(), sizeof(narrow));
    staged_ = {.kind = Field::Kind::kDecimal, .number = narrow};
    return std::nullopt;
  }
  if (staged_.kind == Field::Kind::kDecimal) {
    const auto whole = IntegerOf(staged_.number);
    if (!whole) return refuse();
    staged_ = {.kind = Field::Kind::kInteger, .integer = *whole};
  }
  const bool is_bool = staged_.kind == Field::Kind::kBool && dtype == DataType::kBool;
  if ((staged_.kind != Field::Kind::kInteger && !is_bool) || !FitsInteger(staged_.integer, dtype))
    return refuse();
  next_.null.Note(staged_.integer);
  return CheckNull(name);
}

std::vector<std::string> ValueColumn::Notes(std::string_view name) const {
  std::vector<std::string> notes;
  if (!type_ && DtypeOf(state_) == DataType::kFloat64)
    notes.push_back(fmt::format(
        "the column '{}' is float64, because float32 would round '{}'; `types` can make it float32",
        name, Excerpt(wide_field_, 40)));
  if (const auto value = null(); value && dtype() != DataType::kBool)
    notes.push_back(
        fmt::format("the column '{}' has nulls; {} means null in its array", name, *value));
  return notes;
}

std::optional<std::string> ValueColumn::CheckNull(std::string_view name) const {
  if (!next_.nulls || NullIn(next_) || DtypeOf(next_) != DataType::kInt64) return std::nullopt;
  return fmt::format(
      "the column '{}' has nulls, and all values that could mean null occur in it; give it a wider "
      "type",
      name);
}

DataType ValueColumn::DtypeOf(const State& state) const {
  if (type_) return IsFloat(type_->dtype) ? type_->dtype : DataType::kInt64;
  if (!state.decimals) return DataType::kInt64;
  return state.wide ? DataType::kFloat64 : DataType::kFloat32;
}

void ValueColumn::Keep(ValueList& list) {
  state_ = next_;
  const auto null = state_.nulls ? NullIn(state_) : std::nullopt;
  if (null && null != list.null()) list.SetNull(*null);
  list.WidenTo(DtypeOf(state_));
  if (staged_.kind == Field::Kind::kNull)
    list.AddNull();
  else if (staged_.kind == Field::Kind::kDecimal)
    list.Add(staged_.number);
  else
    list.Add(staged_.integer);
}

void ValueColumn::Finish(ValueList& list) const {
  if (state_.kind == Kind::kNothing && state_.nulls && !type_) list.WidenTo(DataType::kFloat32);
}

DataType ValueColumn::dtype() const {
  if (type_) return type_->dtype;
  if (state_.kind == Kind::kBools) return DataType::kBool;
  if (state_.kind == Kind::kNothing && state_.nulls) return DataType::kFloat32;
  return DtypeOf(state_);
}

std::optional<std::int64_t> ValueColumn::null() const {
  return state_.nulls && !IsFloat(dtype()) ? NullIn(state_) : std::nullopt;
}

// Among 0 and 1 it is -1, so that both fit int8.
std::optional<std::int64_t> ValueColumn::NullIn(const State& state) {
  return state.kind == Kind::kBools ? -1 : state.null.value();
}

std::vector<std::pair<std::string, std::string>> ValueColumn::Attributes(DataType dtype) const {
  std::vector<std::pair<std::string, std::string>> attributes;
  if (const auto value = null()) attributes.emplace_back(kNullAttribute, std::to_string(*value));
  if (state_.kind == Kind::kTimestamps || (type_ && type_->is_timestamp))
    attributes.emplace_back(kTypeAttribute, kTypeTimestamp);
  if (this->dtype() == DataType::kBool && dtype != DataType::kBool)
    attributes.emplace_back(kTypeAttribute, kTypeBool);
  return attributes;
}

}  // namespace internal
}  // namespace rhizome
