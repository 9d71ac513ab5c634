#include "cache/feed/feature_decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "cache/kernels/simd.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

void NormalizeRow(std::span<float> row) {
  float sum = 0;
  for (const float value : row) sum += std::fabs(value);
  if (sum == 0) return;
  const float factor = 1 / sum;
  for (float& value : row) value *= factor;
}

/// Rounds elements to float32; the integer `null` becomes NaN.
template <typename T>
void Round(std::span<const std::byte> stored, std::span<float> out,
           std::optional<std::int64_t> null) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, stored.data() + i * sizeof(T), sizeof(T));
    const bool is_null = std::is_integral_v<T> && null && static_cast<std::int64_t>(value) == *null;
    out[i] = is_null ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(value);
  }
}

}  // namespace

Result<FeatureDecoder> FeatureDecoder::Create(const ArrayEntry& array, bool normalize) {
  const std::string_view type = TypeOf(array.attributes);
  if (!type.empty() && type != kTypeBool)
    return Fail(Status::InvalidArgument(
        fmt::format("array {} has values of the type {}, which cannot be features; add an array of "
                    "numbers that are derived from them",
                    ShownName(array.name), type)));
  FeatureDecoder decoder;
  decoder.dtype_ = array.dtype;
  decoder.dim_ = array.dim;
  decoder.stored_row_bytes_ = array.row_bytes();
  decoder.normalize_ = normalize;
  decoder.null_ = NullOf(array.attributes);
  return decoder;
}

// Kernels convert the narrow floats; the other types are converted element by element.
void FeatureDecoder::ToFloats(std::span<const std::byte> stored, std::span<float> out) const {
  switch (dtype_) {
    case DataType::kFloat32:
      std::memcpy(out.data(), stored.data(), stored.size());
      break;
    case DataType::kFloat16:
      Kernels().widen(RowType::kFloat16, stored.data(), out.size(), out.data());
      break;
    case DataType::kBfloat16:
      Kernels().widen(RowType::kBfloat16, stored.data(), out.size(), out.data());
      break;
    case DataType::kFloat64:
      Round<double>(stored, out, std::nullopt);
      break;
    case DataType::kInt64:
      Round<std::int64_t>(stored, out, null_);
      break;
    case DataType::kInt32:
      Round<std::int32_t>(stored, out, null_);
      break;
    case DataType::kUint32:
      Round<std::uint32_t>(stored, out, null_);
      break;
    case DataType::kInt16:
      Round<std::int16_t>(stored, out, null_);
      break;
    case DataType::kInt8:
      Round<std::int8_t>(stored, out, null_);
      break;
    case DataType::kUint8:
    case DataType::kBool:
      Round<std::uint8_t>(stored, out, null_);
      break;
    case DataType::kInvalid:
      RHIZOME_CHECK(false);
  }
}

void FeatureDecoder::Decode(std::span<const std::byte> stored, std::span<float> out) const {
  RHIZOME_CHECK(stored.size() == out.size() * DataTypeBytes(dtype_));
  if (out.empty()) return;
  ToFloats(stored, out);
  NormalizeRows(out);
}

void FeatureDecoder::DecodeRow(std::span<std::byte> row) const {
  if (takes_as_stored()) return;
  RHIZOME_DCHECK(row.size() >= dim_ * sizeof(float) && row.size() >= stored_row_bytes_);
  const std::span<float> floats(reinterpret_cast<float*>(row.data()), dim_);
  if (dtype_ != DataType::kFloat32) {
    // A decoded row has other bytes, so decoding in place would overwrite unread input.
    const std::vector<std::byte> stored(
        row.begin(), row.begin() + static_cast<std::ptrdiff_t>(stored_row_bytes_));
    ToFloats(stored, floats);
  }
  if (normalize_) NormalizeRow(floats);
}

void FeatureDecoder::NormalizeRows(std::span<float> rows) const {
  if (!normalize_) return;
  for (std::size_t at = 0; at < rows.size(); at += dim_) NormalizeRow(rows.subspan(at, dim_));
}

}  // namespace internal
}  // namespace rhizome
