#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

struct JsonMember;

/// A JSON document that a store reads or writes. Unlike the destructor of nlohmann::json, which may
/// allocate and so end the process when memory is short, its destructor never allocates. Other
/// functions may throw std::bad_alloc. Members of an object are sorted by name.
/// Threads: a value; const functions may be called from many threads.
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

  /// Return the content of a value of the matching kind; for any other kind, 0, "" or no items.
  std::uint64_t unsigned_number() const;
  std::int64_t integer() const;  ///< at most INT64_MAX
  double number() const;
  const std::string& text() const;
  const Items& items() const;
  const Members& members() const;

  /// Returns the number of items of an array or members of an object; 0 for any other kind.
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  const JsonValue& operator[](std::size_t i) const { return items()[i]; }

  /// Returns the member of that name; nullptr if there is none or the value is not an object. The
  /// pointer is valid until this value changes.
  const JsonValue* Find(std::string_view name) const;

  /// Adds an item to an array, or sets a member of an object (replacing a member of the same name).
  /// A null value first becomes an array or an object.
  void Add(JsonValue item);
  void Set(std::string name, JsonValue value);

  /// Sets a member and returns the object, for chaining.
  JsonValue With(std::string name, JsonValue value) &&;

  /// Returns the value as text, formatted as by nlohmann's dump(): on one line, or, if `indent` >=
  /// 0, with one line per member and `indent` blanks per level.
  std::string Dump(int indent = -1) const;

  /// Numbers are compared by their values.
  friend bool operator==(const JsonValue& a, const JsonValue& b);

 private:
  static JsonValue EmptyArray();

  // The copy constructor is deliberately non-trivial: libstdc++ 12 assumes that a variant with such
  // alternatives always holds a value, so if copying another alternative throws, it destroys an
  // object that was never created.
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

}  // namespace internal
}  // namespace rhizome
