#include "storage/section/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {
namespace {

template <typename T, typename Variant>
const T& Of(const Variant& value) {
  static const T nothing{};
  const T* const found = std::get_if<T>(&value);
  return found == nullptr ? nothing : *found;
}

void AppendQuoted(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    const std::size_t special = kSpecial.find(c);
    if (special != kSpecial.npos) {
      out += '\\';
      out += kLetters[special];
    } else if (static_cast<unsigned char>(c) < ' ') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

/// Writes values as text. Each nesting level is indented by `indent` more blanks; if `indent` is
/// negative, everything is on one line.
class Dumper {
 public:
  explicit Dumper(int indent) : indent_(indent) {}

  void Append(const JsonValue& value) {
    if (value.is_array()) {
      AppendAll('[', value.items(), ']', [&](const JsonValue& item) { Append(item); });
    } else if (value.is_object()) {
      AppendAll('{', value.members(), '}', [&](const JsonMember& member) {
        AppendQuoted(member.name, out_);
        out_ += indent_ < 0 ? ":" : ": ";
        Append(member.value);
      });
    } else {
      AppendSimple(value);
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  template <typename List, typename AppendOne>
  void AppendAll(char open, const List& list, char close, const AppendOne& append) {
    out_ += open;
    ++depth_;
    bool first = true;
    for (const auto& one : list) {
      if (!first) out_ += ',';
      first = false;
      BreakLine();
      append(one);
    }
    --depth_;
    if (!list.empty()) BreakLine();
    out_ += close;
  }

  void AppendSimple(const JsonValue& value) {
    if (value.is_null()) {
      out_ += "null";
    } else if (value.is_string()) {
      AppendQuoted(value.text(), out_);
    } else if (value.is_unsigned()) {
      out_ += fmt::format("{}", value.unsigned_number());
    } else if (value.is_integer()) {
      out_ += fmt::format("{}", value.integer());
    } else if (value.is_number()) {
      out_ += std::isfinite(value.number()) ? fmt::format("{}", value.number()) : "null";
    } else {
      out_ += value == JsonValue(true) ? "true" : "false";
    }
  }

  void BreakLine() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_) * depth_, ' ');
  }

  const int indent_;
  std::size_t depth_ = 0;
  std::string out_;
};

/// Builds a JsonValue from the events of nlohmann's SAX parser. Its depth is bounded, because
/// ParseJson refuses text that is nested deeper than kMaxJsonNesting.
class Builder {
 public:
  JsonValue Take() { return std::move(done_); }

  bool null() { return Put(JsonValue()); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(std::int64_t value) { return Put(value); }
  bool number_unsigned(std::uint64_t value) { return Put(value); }
  bool number_float(double value, const std::string&) { return Put(value); }
  bool string(std::string& value) { return Put(std::move(value)); }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // not part of JSON
  bool start_object(std::size_t) { return Open(JsonValue::Object()); }
  bool start_array(std::size_t) { return Open(JsonValue::Array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& name) {
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) {
    return false;
  }

 private:
  struct Level {
    JsonValue value;
    std::string key;  // name of the next member
  };

  bool Open(JsonValue empty) {
    open_.push_back(Level{std::move(empty), std::string()});
    return true;
  }
  bool Close() {
    JsonValue whole = std::move(open_.back().value);
    open_.pop_back();
    return Put(std::move(whole));
  }
  bool Put(JsonValue value) {
    if (open_.empty()) {
      done_ = std::move(value);
    } else if (open_.back().value.is_array()) {
      open_.back().value.Add(std::move(value));
    } else {
      open_.back().value.Set(std::move(open_.back().key), std::move(value));
    }
    return true;
  }

  std::vector<Level> open_;
  JsonValue done_;
};

const auto kByName = [](const JsonMember& member, std::string_view name) {
  return member.name < name;
};

}  // namespace

JsonValue::JsonValue() = default;
JsonValue::JsonValue(bool value) : value_(value) {}
JsonValue::JsonValue(double value) : value_(value) {}
JsonValue::JsonValue(std::string value) : value_(std::move(value)) {}
JsonValue::JsonValue(std::string_view value) : value_(std::string(value)) {}
JsonValue::JsonValue(const char* value) : value_(std::string(value)) {}

JsonValue::JsonValue(const JsonValue&) = default;
JsonValue::JsonValue(JsonValue&&) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue&) = default;
JsonValue& JsonValue::operator=(JsonValue&&) noexcept = default;
JsonValue::~JsonValue() = default;

JsonValue JsonValue::EmptyArray() {
  JsonValue array;
  array.value_ = Items();
  return array;
}

JsonValue JsonValue::Object() {
  JsonValue object;
  object.value_ = Members();
  return object;
}

std::uint64_t JsonValue::unsigned_number() const { return Of<std::uint64_t>(value_); }

std::int64_t JsonValue::integer() const {
  if (!is_unsigned()) return Of<std::int64_t>(value_);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(unsigned_number(), kMost));
}

double JsonValue::number() const {
  if (is_unsigned()) return static_cast<double>(unsigned_number());
  return is_integer() ? static_cast<double>(integer()) : Of<double>(value_);
}

const std::string& JsonValue::text() const { return Of<std::string>(value_); }
const JsonValue::Items& JsonValue::items() const { return Of<Items>(value_); }
const JsonValue::Members& JsonValue::members() const { return Of<Members>(value_); }

std::size_t JsonValue::size() const { return items().size() + members().size(); }

const JsonValue* JsonValue::Find(std::string_view name) const {
  const Members& all = members();
  const auto at = std::lower_bound(all.begin(), all.end(), name, kByName);
  return at == all.end() || at->name != name ? nullptr : &at->value;
}

void JsonValue::Add(JsonValue item) {
  if (is_null()) value_ = Items();
  std::get<Items>(value_).push_back(std::move(item));
}

void JsonValue::Set(std::string name, JsonValue value) {
  if (is_null()) value_ = Members();
  auto& all = std::get<Members>(value_);
  const auto at = std::lower_bound(all.begin(), all.end(), std::string_view(name), kByName);
  if (at != all.end() && at->name == name)
    at->value = std::move(value);
  else
    all.insert(at, JsonMember{std::move(name), std::move(value)});
}

JsonValue JsonValue::With(std::string name, JsonValue value) && {
  Set(std::move(name), std::move(value));
  return std::move(*this);
}

std::string JsonValue::Dump(int indent) const {
  Dumper dumper(indent);
  dumper.Append(*this);
  return dumper.Take();
}

bool operator==(const JsonValue& a, const JsonValue& b) {
  const bool as_doubles = a.is_number() && b.is_number() && !(a.is_integer() && b.is_integer());
  return as_doubles ? a.number() == b.number() : a.value_ == b.value_;
}

/// Parses in these steps:
///   1. Refuses text that is nested too deep, before a parser reads it.
///   2. nlohmann's SAX parser reads the text and checks the syntax and numbers.
///   3. Builder creates the value from the parser's events, with members sorted by name.
Result<JsonValue> ParseJson(std::string_view text) {
  if (IsJsonTooDeep(text))
    return Fail(Status::Corruption(fmt::format("nested deeper than {}", kMaxJsonNesting)));
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return Fail(Status::Corruption("not JSON"));
  return builder.Take();
}

}  // namespace internal
}  // namespace rhizome
