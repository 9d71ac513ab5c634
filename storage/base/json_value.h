#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

struct JsonMember;

/// A value of JSON, and what it holds: of what a store reads and writes. That of nlohmann takes
/// memory in its destructor, which ends the process where there is none; this one never does, and
/// where memory is short std::bad_alloc is thrown. Members of an object are sorted by their names.
/// Threads: a value; const functions from many.
class JsonValue {
 public:
  using Items = std::vector<JsonValue>;
  using Members = std::vector<JsonMember>;

  JsonValue();                        // null
  JsonValue(bool value);              // NOLINT: as in JSON
  JsonValue(double value);            // NOLINT
  JsonValue(std::string value);       // NOLINT
  JsonValue(std::string_view value);  // NOLINT
  JsonValue(const char* value);       // NOLINT
  JsonValue(const JsonValue&);
  JsonValue(JsonValue&&) noexcept;
  JsonValue& operator=(const JsonValue&);
  JsonValue& operator=(JsonValue&&) noexcept;
  ~JsonValue();
  template <std::integral T>
  JsonValue(T value);  // NOLINT

  template <typename... Values>
  static JsonValue Array(Values&&... items) {
    JsonValue array = EmptyArray();
    (array.Add(JsonValue(std::forward<Values>(items))), ...);
    return array;
  }
  static JsonValue Object();

  bool is_null() const { return value_.index() == 0; }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_unsigned() const { return std::holds_alternative<std::uint64_t>(value_); }
  bool is_integer() const { return is_unsigned() || std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_array() const { return std::holds_alternative<Items>(value_); }
  bool is_object() const { return std::holds_alternative<Members>(value_); }

  /// Of the kind that the value is of, else nothing: 0, "", no items.
  std::uint64_t unsigned_number() const;
  std::int64_t integer() const;  ///< at most INT64_MAX
  double number() const;
  const std::string& text() const;
  const Items& items() const;
  const Members& members() const;

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  const JsonValue& operator[](std::size_t i) const { return items()[i]; }

  /// The member of that name; null if there is none, or this is no object.
  const JsonValue* Find(std::string_view name) const;

  /// Makes an array, or object, of null. Of two members of a name the later one stays.
  void Add(JsonValue item);
  void Set(std::string name, JsonValue value);

  /// The same object with that member.
  JsonValue With(std::string name, JsonValue value) &&;

  /// Its text: in a line, or with so many blanks before each level, as nlohmann's writes it.
  std::string Dump(int indent = -1) const;

  /// Numbers are compared by their values.
  friend bool operator==(const JsonValue& a, const JsonValue& b);

 private:
  static JsonValue EmptyArray();

  // Not trivial: of a variant of which libstdc++ 12 thinks that it always holds something, it
  // destroys what is not there when a copy of it cannot be made.
  struct Null {
    Null() = default;
    Null(const Null&) noexcept {}
    Null& operator=(const Null&) noexcept { return *this; }
    ~Null() = default;
    friend bool operator==(const Null&, const Null&) { return true; }
  };

  std::variant<Null, bool, std::uint64_t, std::int64_t, double, std::string, Items, Members> value_;
};

struct JsonMember {
  std::string name;
  JsonValue value;
  friend bool operator==(const JsonMember&, const JsonMember&) = default;
};

template <std::integral T>
JsonValue::JsonValue(T value) : value_(static_cast<std::uint64_t>(value)) {
  if constexpr (std::signed_integral<T>)
    if (value < 0) value_ = static_cast<std::int64_t>(value);
}

/// Errors: kCorruption, "not JSON", or nested deeper than kMaxJsonNesting (untrusted_json.h).
Result<JsonValue> ParseJson(std::string_view text);

}  // namespace rhizome::inline internal
