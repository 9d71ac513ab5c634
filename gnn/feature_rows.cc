#include "rhizome/gnn/feature_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "rhizome/gnn/simd.h"
#include "rhizome/storage/check.h"

namespace rhizome {
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
    return Fail(Status::InvalidArgument(
        fmt::format("array {} holds {}; features must be float32 or float16", array.name,
                    DataTypeName(array.dtype))));
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
  if (!normalize_) return;
  for (std::size_t at = 0; at < out.size(); at += dim_) NormalizeRow(out.subspan(at, dim_));
}

}  // namespace rhizome
