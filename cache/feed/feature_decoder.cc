#include "cache/feed/feature_decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "cache/kernels/simd.h"
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

}  // namespace

Result<FeatureDecoder> FeatureDecoder::Create(const ArrayEntry& array, bool normalize) {
  if (array.dtype != DataType::kFloat32 && array.dtype != DataType::kFloat16) {
    return Fail(
        Status::InvalidArgument(fmt::format("array {} is {}; features must be float32 or float16",
                                            ShownName(array.name), DataTypeName(array.dtype))));
  }
  FeatureDecoder decoder;
  decoder.dtype_ = array.dtype;
  decoder.dim_ = array.dim;
  decoder.stored_row_bytes_ = array.row_bytes();
  decoder.normalize_ = normalize;
  return decoder;
}

void FeatureDecoder::Decode(std::span<const std::byte> stored, std::span<float> out) const {
  RHIZOME_CHECK(stored.size() == out.size() * DataTypeBytes(dtype_));
  if (out.empty()) return;
  if (dtype_ == DataType::kFloat32) {
    std::memcpy(out.data(), stored.data(), stored.size());
  } else {
    Kernels().widen(RowType::kFloat16, stored.data(), out.size(), out.data());
  }
  NormalizeRows(out);
}

void FeatureDecoder::DecodeRow(std::span<std::byte> row) const {
  if (takes_as_stored()) return;
  RHIZOME_DCHECK(row.size() >= dim_ * sizeof(float) && row.size() >= stored_row_bytes_);
  const std::span<float> floats(reinterpret_cast<float*>(row.data()), dim_);
  if (dtype_ == DataType::kFloat16) {
    // A decoded row takes twice the bytes, so decoding in place would overwrite unread input.
    const std::vector<std::byte> stored(
        row.begin(), row.begin() + static_cast<std::ptrdiff_t>(stored_row_bytes_));
    Kernels().widen(RowType::kFloat16, stored.data(), dim_, floats.data());
  }
  NormalizeRow(floats);
}

void FeatureDecoder::NormalizeRows(std::span<float> rows) const {
  if (!normalize_) return;
  for (std::size_t at = 0; at < rows.size(); at += dim_) NormalizeRow(rows.subspan(at, dim_));
}

}  // namespace internal
}  // namespace rhizome
