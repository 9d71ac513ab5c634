#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "index/base/value_list.h"
#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The type that a user gives a text column (IngestOptions::types).
struct GivenType {
  DataType dtype = DataType::kInvalid;
  bool is_timestamp = false;
  bool is_text = false;  ///< the column has texts (TextColumn), which ValueColumn does not accept
};

/// Returns the type of that name: one of ColumnTypeNames().
std::optional<GivenType> ParseColumnType(std::string_view name);
std::string ColumnTypeNames();  ///< for messages

/// Returns the type that `types` gives a column, or nullopt.
/// Errors: kInvalidArgument, an unknown type.
Result<std::optional<GivenType>> ColumnTypeOf(const std::map<std::string, std::string>& types,
                                              const std::string& column);

/// Chooses the value that means null in a column of integers: one that no element has. It is the
/// smallest of the type, or of unsigned types the largest, unless that occurs.
class NullChoice {
 public:
  explicit NullChoice(DataType dtype);

  /// Records a value that occurs.
  void Note(std::int64_t value);

  /// Returns the choice; nullopt if all candidates occur.
  std::optional<std::int64_t> value() const;

 private:
  static constexpr std::size_t kCandidates = 256;
  std::int64_t first_;
  std::int64_t step_;
  std::bitset<kCandidates> occurs_;
};

/// Infers the type of a text column from its fields, and adds their values to a list. Without a
/// given type:
///   - Integers are int64.
///   - Numbers that are not all integers are float32 if float32 keeps the decimal of each
///     (KeepsDecimal), otherwise float64.
///   - true and false are 0 and 1, and dates and times (ParseTimestamp) are microseconds.
///   - A null (IsNullWord, nan) is NaN among floats, and NullChoice in the other columns.
/// A number that would change is refused: an integer beyond int64, or that float64 rounds in a
/// column with other numbers, and a number beyond float64.
/// Stage checks a field; Keep adds it once the rest of its line is valid.
/// Threads: one at a time.
class ValueColumn {
 public:
  /// The kind of values that a column has. A column of nulls alone has kNothing.
  enum class Kind : std::uint8_t { kNothing, kNumbers, kBools, kTimestamps };

  explicit ValueColumn(std::optional<GivenType> type = {});

  /// Returns the reason why `field` does not fit the column `name`, or nullopt if it does.
  std::optional<std::string> Stage(std::string_view field, std::string_view name);

  /// Adds the staged value to the column's list, which is int64 and empty at first.
  void Keep(ValueList& list);

  /// Completes a list after the last value: a column of nulls alone becomes float32.
  void Finish(ValueList& list) const;

  Kind kind() const { return state_.kind; }
  bool has_nulls() const { return state_.nulls; }
  bool staged_null() const { return staged_.kind == Field::Kind::kNull; }
  /// Returns the staged integer or time; 0 if the staged value is none.
  std::int64_t staged_integer() const { return staged_.integer; }
  bool staged_float() const { return IsWider(DtypeOf(next_), DataType::kInt64); }

  /// Returns the dtype that the values need: the given one, or kBool, kInt64, kFloat32, kFloat64.
  DataType dtype() const;

  /// Returns what the values mean, as attributes of an array (array_facts.h). `dtype` is the type
  /// as which they are stored.
  std::vector<std::pair<std::string, std::string>> Attributes(DataType dtype) const;

  /// Returns the integer that means null, if there are nulls.
  std::optional<std::int64_t> null() const;

  /// Returns what a user may not expect of the column `name`, a sentence each: that it is float64,
  /// and which integer means null.
  std::vector<std::string> Notes(std::string_view name) const;

 private:
  /// A field of a number, bool or time, or a null.
  struct Field {
    enum class Kind : std::uint8_t { kNull, kInteger, kDecimal, kBool, kTimestamp };
    Kind kind = Kind::kNull;
    std::int64_t integer = 0;
    double number = 0;
  };
  struct State {
    Kind kind = Kind::kNothing;
    bool nulls = false;
    bool decimals = false;  // some number is not an integer
    bool wide = false;      // some number needs float64, if the column is one of floats
    bool rounds = false;    // some integer would be rounded as float64
    NullChoice null;
  };

  static std::optional<Field> Parse(std::string_view field);
  std::optional<std::string> StageGiven(std::string_view field, std::string_view name);
  std::optional<std::string> StageNumber(std::string_view field, std::string_view name);
  std::optional<std::string> CheckNull(std::string_view name) const;
  DataType DtypeOf(const State& state) const;  // int64, float32 or float64
  static std::optional<std::int64_t> NullIn(const State& state);

  const std::optional<GivenType> type_;
  State state_;
  State next_;  // the state after Keep
  Field staged_;
  std::string wide_field_;  // the first field that float32 would change
};

}  // namespace internal
}  // namespace rhizome
