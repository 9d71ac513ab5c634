#include "tools/import/elements.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "index/input/convert.h"
#include "index/input/number.h"
#include "rhizome/graph_types.h"
#include "rhizome/text_values.h"

// Conversion of array elements: binary to float32 and JSON (ToFloats, ToJson), text and JSON to
// binary (ParseElement, ParseElementJson), and the class names of a store (ClassNames).

namespace rhizome {
namespace {

/// Converts IEEE binary16 to binary32, exactly.
float HalfToFloat(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1F;
  const std::uint32_t mantissa = half & 0x3FF;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

template <typename T>
T ElementAt(std::span<const std::byte> raw, std::size_t i) {
  T element;
  std::memcpy(&element, raw.data() + i * sizeof(T), sizeof(T));
  return element;
}

/// Calls `use` with element i of `raw` as a C++ type that holds it exactly.
template <typename Use>
void VisitElement(DataType dtype, std::span<const std::byte> raw, std::size_t i, Use use) {
  switch (dtype) {
    case DataType::kFloat32:
      return use(ElementAt<float>(raw, i));
    case DataType::kFloat16:
      return use(HalfToFloat(ElementAt<std::uint16_t>(raw, i)));
    case DataType::kInt64:
      return use(ElementAt<std::int64_t>(raw, i));
    case DataType::kInt32:
      return use(ElementAt<std::int32_t>(raw, i));
    case DataType::kUint32:
      return use(ElementAt<std::uint32_t>(raw, i));
    case DataType::kUint8:
      return use(ElementAt<std::uint8_t>(raw, i));
    case DataType::kInvalid:
      return use(0.0F);
  }
}

/// Bit patterns of the non-finite values of a float type.
struct FloatBits {
  std::uint32_t sign;
  std::uint32_t infinity;
  std::uint32_t nan;  // the default NaN: quiet, positive, without payload
  int digits;         // number of hexadecimal digits
};

std::optional<FloatBits> FloatBitsOf(DataType dtype) {
  if (dtype == DataType::kFloat32) return FloatBits{0x80000000U, 0x7F800000U, 0x7FC00000U, 8};
  if (dtype == DataType::kFloat16) return FloatBits{0x8000U, 0x7C00U, 0x7E00U, 4};
  return std::nullopt;
}

constexpr std::string_view kInfinity = "Infinity";
constexpr std::string_view kNegativeInfinity = "-Infinity";
constexpr std::string_view kNan = "NaN";
constexpr std::string_view kNanBits = "NaN(0x";  // the hexadecimal bits and ")" follow

std::string NameOfNonFinite(const FloatBits& format, std::uint32_t bits) {
  if (bits == format.infinity) return std::string(kInfinity);
  if (bits == (format.infinity | format.sign)) return std::string(kNegativeInfinity);
  if (bits == format.nan) return std::string(kNan);
  return fmt::format("{}{:0{}x})", kNanBits, bits, format.digits);
}

/// Returns the bits that NameOfNonFinite printed as `name`, or nullopt for any other text.
std::optional<std::uint32_t> NonFiniteBits(const FloatBits& format, std::string_view name) {
  if (name == kInfinity) return format.infinity;
  if (name == kNegativeInfinity) return format.infinity | format.sign;
  if (name == kNan) return format.nan;
  if (!name.starts_with(kNanBits) || !name.ends_with(')')) return std::nullopt;
  name.remove_prefix(kNanBits.size());
  name.remove_suffix(1);
  std::uint32_t bits = 0;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data(), end, bits, 16);
  const bool whole =
      error == std::errc() && at == end && name.size() == static_cast<std::size_t>(format.digits);
  // Sign aside, the bits of a NaN are above the bits of infinity.
  return whole && (bits & ~format.sign) > format.infinity ? std::optional(bits) : std::nullopt;
}

/// Returns the bits of a float element.
std::uint32_t BitsAt(DataType dtype, std::span<const std::byte> raw, std::size_t i) {
  return dtype == DataType::kFloat32 ? ElementAt<std::uint32_t>(raw, i)
                                     : ElementAt<std::uint16_t>(raw, i);
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

template <typename T>
bool StoreElement(T element, std::span<std::byte> out) {
  std::memcpy(out.data(), &element, sizeof(T));
  return true;
}

template <typename T>
bool ParseInteger(std::string_view text, std::span<std::byte> out) {
  const auto integer = ParseCanonicalInteger(text);
  return integer && std::in_range<T>(*integer) && StoreElement(static_cast<T>(*integer), out);
}

bool ParseHalf(std::string_view text, std::span<std::byte> out) {
  const auto number = ParseFiniteFloat(text);
  if (!number) return false;
  const auto refused = ConvertElements(DataType::kFloat32, std::as_bytes(std::span(&*number, 1)),
                                       DataType::kFloat16, out.first(sizeof(std::uint16_t)));
  return !refused;
}

}  // namespace

bool ParseElement(DataType dtype, std::string_view text, std::span<std::byte> out) {
  switch (dtype) {
    case DataType::kFloat32: {
      const auto number = ParseFiniteFloat(text);
      return number && StoreElement(*number, out);
    }
    case DataType::kFloat16:
      return ParseHalf(text, out);
    case DataType::kInt64:
      return ParseInteger<std::int64_t>(text, out);
    case DataType::kInt32:
      return ParseInteger<std::int32_t>(text, out);
    case DataType::kUint32:
      return ParseInteger<std::uint32_t>(text, out);
    case DataType::kUint8:
      return ParseInteger<std::uint8_t>(text, out);
    case DataType::kInvalid:
      return false;
  }
  return false;
}

bool ParseElementJson(DataType dtype, const Json& value, std::span<std::byte> out) {
  if (value.is_number()) return ParseElement(dtype, value.dump(), out);
  const auto format = FloatBitsOf(dtype);
  if (!value.is_string() || !format) return false;
  const auto bits = NonFiniteBits(*format, value.get_ref<const std::string&>());
  if (!bits) return false;
  return dtype == DataType::kFloat32 ? StoreElement(*bits, out)
                                     : StoreElement(static_cast<std::uint16_t>(*bits), out);
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

Json ToJson(DataType dtype, std::span<const std::byte> raw) {
  Json values = Json::array();
  const auto format = FloatBitsOf(dtype);
  for (std::size_t i = 0; i < raw.size() / DataTypeBytes(dtype); ++i) {
    if (format) {
      const std::uint32_t bits = BitsAt(dtype, raw, i);
      if ((bits & ~format->sign) >= format->infinity) {
        values.push_back(NameOfNonFinite(*format, bits));
        continue;
      }
    }
    VisitElement(dtype, raw, i, [&](auto element) { values.push_back(NumberJson(element)); });
  }
  return values;
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
  Json number = ToJson(array_->entry().dtype, row)[0];
  if (!number.is_number_integer()) return number;
  const auto index = number.get<std::int64_t>();
  if (index < 0 || static_cast<std::uint64_t>(index) >= names_.size()) return number;
  return Json(names_[static_cast<std::size_t>(index)]);
}

}  // namespace rhizome
