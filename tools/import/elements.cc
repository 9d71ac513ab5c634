#include "tools/import/elements.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "index/input/convert.h"
#include "index/input/number.h"
#include "index/input/timestamp.h"
#include "rhizome/graph_types.h"
#include "rhizome/text_values.h"
#include "storage/array/array_facts.h"
#include "storage/section/untrusted_json.h"

// Conversion of array elements: binary to float32, JSON and text (ToFloats, ToJson, ElementText),
// text and JSON to binary (ParseElement, ParseElementJson), and the class names of a store
// (ClassNames).

namespace rhizome {
namespace {

template <typename T>
T ElementAt(std::span<const std::byte> raw, std::size_t i) {
  T element;
  std::memcpy(&element, raw.data() + i * sizeof(T), sizeof(T));
  return element;
}

/// Returns element i of a type of two bytes, float16 or bfloat16.
float NarrowAt(DataType dtype, std::span<const std::byte> raw, std::size_t i) {
  float wide = 0;
  static_cast<void>(ConvertElements(dtype, raw.subspan(2 * i, 2), DataType::kFloat32,
                                    std::as_writable_bytes(std::span(&wide, 1))));
  return wide;
}

/// Calls `use` with element i of `raw` as a C++ type that holds it exactly.
template <typename Use>
void VisitElement(DataType dtype, std::span<const std::byte> raw, std::size_t i, Use use) {
  switch (dtype) {
    case DataType::kFloat32:
      return use(ElementAt<float>(raw, i));
    case DataType::kFloat16:
      return use(NarrowAt(dtype, raw, i));
    case DataType::kInt64:
      return use(ElementAt<std::int64_t>(raw, i));
    case DataType::kInt32:
      return use(ElementAt<std::int32_t>(raw, i));
    case DataType::kUint32:
      return use(ElementAt<std::uint32_t>(raw, i));
    case DataType::kUint8:
      return use(ElementAt<std::uint8_t>(raw, i));
    case DataType::kInt16:
      return use(ElementAt<std::int16_t>(raw, i));
    case DataType::kInt8:
      return use(ElementAt<std::int8_t>(raw, i));
    case DataType::kBool:
      return use(ElementAt<std::uint8_t>(raw, i) != 0);
    case DataType::kBfloat16:
      return use(NarrowAt(dtype, raw, i));
    case DataType::kFloat64:
      return use(ElementAt<double>(raw, i));
    case DataType::kInvalid:
      return use(0.0F);
  }
}

/// Bit patterns of the non-finite values of a float type.
struct FloatBits {
  std::uint64_t sign;
  std::uint64_t infinity;
  std::uint64_t nan;  // the default NaN: quiet, positive, without payload
  int digits;         // number of hexadecimal digits
};

std::optional<FloatBits> FloatBitsOf(DataType dtype) {
  if (dtype == DataType::kFloat32) return FloatBits{0x80000000U, 0x7F800000U, 0x7FC00000U, 8};
  if (dtype == DataType::kFloat16) return FloatBits{0x8000U, 0x7C00U, 0x7E00U, 4};
  if (dtype == DataType::kBfloat16) return FloatBits{0x8000U, 0x7F80U, 0x7FC0U, 4};
  if (dtype == DataType::kFloat64)
    return FloatBits{std::uint64_t{1} << 63, std::uint64_t{0x7FF} << 52, std::uint64_t{0xFFF} << 51,
                     16};
  return std::nullopt;
}

constexpr std::string_view kInfinity = "Infinity";
constexpr std::string_view kNegativeInfinity = "-Infinity";
constexpr std::string_view kNan = "NaN";
constexpr std::string_view kNanBits = "NaN(0x";  // the hexadecimal bits and ")" follow

std::string NameOfNonFinite(const FloatBits& format, std::uint64_t bits) {
  if (bits == format.infinity) return std::string(kInfinity);
  if (bits == (format.infinity | format.sign)) return std::string(kNegativeInfinity);
  if (bits == format.nan) return std::string(kNan);
  return fmt::format("{}{:0{}x})", kNanBits, bits, format.digits);
}

/// Returns the bits that NameOfNonFinite printed as `name`, or nullopt for any other text.
std::optional<std::uint64_t> NonFiniteBits(const FloatBits& format, std::string_view name) {
  if (name == kInfinity) return format.infinity;
  if (name == kNegativeInfinity) return format.infinity | format.sign;
  if (name == kNan) return format.nan;
  if (!name.starts_with(kNanBits) || !name.ends_with(')')) return std::nullopt;
  name.remove_prefix(kNanBits.size());
  name.remove_suffix(1);
  std::uint64_t bits = 0;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data(), end, bits, 16);
  const bool whole =
      error == std::errc() && at == end && name.size() == static_cast<std::size_t>(format.digits);
  // Sign aside, the bits of a NaN are above the bits of infinity.
  return whole && (bits & ~format.sign) > format.infinity ? std::optional(bits) : std::nullopt;
}

/// Returns the bits of a float element.
std::uint64_t BitsAt(DataType dtype, std::span<const std::byte> raw, std::size_t i) {
  if (DataTypeBytes(dtype) == 8) return ElementAt<std::uint64_t>(raw, i);
  if (DataTypeBytes(dtype) == 4) return ElementAt<std::uint32_t>(raw, i);
  return ElementAt<std::uint16_t>(raw, i);
}

/// Stores the low bytes, as many as the dtype has.
bool StoreBits(DataType dtype, std::uint64_t bits, std::span<std::byte> out) {
  std::memcpy(out.data(), &bits, DataTypeBytes(dtype));  // little-endian, as everywhere
  return true;
}

/// Returns whether an element of a float type is infinite or NaN.
bool IsNonFinite(const FloatBits& format, std::uint64_t bits) {
  return (bits & ~format.sign) >= format.infinity;
}

/// Returns an element of an integer type, or of bool.
std::int64_t IntegerAt(DataType dtype, std::span<const std::byte> raw, std::size_t i) {
  std::int64_t integer = 0;
  VisitElement(dtype, raw, i, [&](auto element) { integer = static_cast<std::int64_t>(element); });
  return integer;
}

Json NumberJson(float number) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), number);
  double shortest = 0;
  std::from_chars(text, written.ptr, shortest);
  return shortest;
}
template <typename T>
Json NumberJson(T number) {
  return number;
}

/// Returns a time as text, or as a number if its year has no four digits.
Json TimestampJson(std::int64_t time) {
  std::string text = TimestampText(time);
  if (ParseCanonicalInteger(text)) return time;
  return text;
}

Json ElementJson(const ElementType& type, std::span<const std::byte> raw, std::size_t i) {
  if (const auto format = FloatBitsOf(type.dtype)) {
    const std::uint64_t bits = BitsAt(type.dtype, raw, i);
    if (IsNonFinite(*format, bits)) return NameOfNonFinite(*format, bits);
  } else if (type.null || type.is_timestamp || type.is_bool) {
    const std::int64_t integer = IntegerAt(type.dtype, raw, i);
    if (integer == type.null) return nullptr;
    if (type.is_timestamp) return TimestampJson(integer);
    if (type.is_bool && (integer == 0 || integer == 1)) return integer == 1;
  }
  Json value;
  VisitElement(type.dtype, raw, i, [&](auto element) { value = NumberJson(element); });
  return value;
}

/// Stores an integer that is not the one that means null.
bool StoreInteger(const ElementType& type, std::int64_t integer, std::span<std::byte> out) {
  return integer != type.null &&
         !ConvertElements(DataType::kInt64, std::as_bytes(std::span(&integer, 1)), type.dtype,
                          out.first(DataTypeBytes(type.dtype)));
}

bool StoreNull(const ElementType& type, std::span<std::byte> out) {
  if (const auto format = FloatBitsOf(type.dtype)) return StoreBits(type.dtype, format->nan, out);
  if (!type.null) return false;
  return !ConvertElements(DataType::kInt64, std::as_bytes(std::span(&*type.null, 1)), type.dtype,
                          out.first(DataTypeBytes(type.dtype)));
}

}  // namespace

ElementType::ElementType(DataType type,
                         const std::vector<std::pair<std::string, std::string>>& attributes)
    : ElementType(type) {
  if (IsFloat(type)) return;
  null = NullOf(attributes);
  is_timestamp = TypeOf(attributes) == kTypeTimestamp && type == DataType::kInt64;
  is_bool = is_bool || TypeOf(attributes) == kTypeBool;
}

bool ParseElement(const ElementType& type, std::string_view text, std::span<std::byte> out) {
  if (IsNullWord(text)) return StoreNull(type, out);
  if (IsFloat(type.dtype)) return ParseElement(type.dtype, text, out);
  if (type.is_timestamp)
    if (const auto time = ParseTimestamp(text)) return StoreInteger(type, *time, out);
  if (type.is_bool)
    if (const auto value = ParseBool(text)) return StoreInteger(type, *value ? 1 : 0, out);
  const auto integer = ParseCanonicalInteger(text);
  return integer && StoreInteger(type, *integer, out);
}

bool ParseElementJson(const ElementType& type, const Json& value, std::span<std::byte> out) {
  if (value.is_null()) return StoreNull(type, out);
  if (value.is_number()) return ParseElement(type, value.dump(), out);
  if (value.is_boolean()) return type.is_bool && StoreInteger(type, value.get<bool>() ? 1 : 0, out);
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (type.is_timestamp) return !text.empty() && ParseElement(type, text, out);
  const auto format = FloatBitsOf(type.dtype);
  const auto bits = format ? NonFiniteBits(*format, text) : std::nullopt;
  return bits && StoreBits(type.dtype, *bits, out);
}

std::string QuoteNonFinite(std::string_view json) {
  std::string out;
  bool in_string = false;
  while (!json.empty()) {
    std::size_t length = 1;
    if (in_string && json.front() == '\\') {
      length = std::min<std::size_t>(2, json.size());
    } else if (json.front() == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      for (const std::string_view name : {kNegativeInfinity, kInfinity, kNan}) {
        if (!json.starts_with(name)) continue;
        out += fmt::format("\"{}\"", name);
        length = 0;
        json.remove_prefix(name.size());
        break;
      }
    }
    out += json.substr(0, length);
    json.remove_prefix(length);
  }
  return out;
}

std::string ExpectedElement(const ElementType& type) {
  if (type.is_timestamp) return "a time (2024-05-01T12:30:00Z)";
  if (type.is_bool) return "true or false";
  const bool vowel = DataTypeName(type.dtype).front() == 'i';
  return fmt::format("{} {} number", vowel ? "an" : "a", DataTypeName(type.dtype));
}

void ToFloats(DataType dtype, std::span<const std::byte> raw, std::span<float> out) {
  if (dtype == DataType::kFloat32) {
    std::memcpy(out.data(), raw.data(), out.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    VisitElement(dtype, raw, i, [&](auto element) { out[i] = static_cast<float>(element); });
  }
}

Json ToJson(const ElementType& type, std::span<const std::byte> raw) {
  Json values = Json::array();
  for (std::size_t i = 0; i < raw.size() / DataTypeBytes(type.dtype); ++i)
    values.push_back(ElementJson(type, raw, i));
  return values;
}

std::string ElementText(const ElementType& type, std::span<const std::byte> raw) {
  const Json value = ElementJson(type, raw, 0);
  if (value.is_null()) return {};
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  if (text == kInfinity) return "inf";
  if (text == kNegativeInfinity) return "-inf";
  return text.starts_with(kNan) ? "nan" : text;
}

Result<std::vector<std::byte>> ReadVertexRow(const GraphSnapshot& graph, const ChunkArray& array,
                                             VertexId vertex) {
  std::vector<std::byte> row(array.entry().row_bytes());
  RHIZOME_RETURN_IF_ERROR(graph.ReadRows(array.entry().name, std::span(&vertex, 1), row));
  return row;
}

Result<std::optional<ClassNames>> ClassNames::Open(const OpenedGraph& opened) {
  const ArrayEntry* entry = opened.store->manifest().FindArray("label");
  if (entry == nullptr || entry->dim != 1) return std::optional<ClassNames>();
  ClassNames labels;
  RHIZOME_ASSIGN_OR_RETURN(labels.array_, opened.store->OpenArray("label"));
  RHIZOME_ASSIGN_OR_RETURN(labels.names_, ReadClassNames(*opened.graph));
  return std::optional<ClassNames>(std::move(labels));
}

Result<Json> ClassNames::Of(const GraphSnapshot& graph, VertexId vertex) const {
  RHIZOME_ASSIGN_OR_RETURN(const auto row, ReadVertexRow(graph, *array_, vertex));
  Json number = ToJson(ElementType(array_->entry()), row)[0];
  if (!number.is_number_integer()) return number;
  const auto index = number.get<std::int64_t>();
  if (index < 0 || static_cast<std::uint64_t>(index) >= names_.size()) return number;
  return Json(names_[static_cast<std::size_t>(index)]);
}

}  // namespace rhizome
