#include "rhizome/gnn/feature_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "rhizome/gnn/simd.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

// Minibatches differ a little in size: the next fits too.
constexpr std::size_t kSpareShare = 16;

void NormalizeRow(std::span<float> row) {
  float sum = 0;
  for (const float value : row) sum += std::fabs(value);
  if (sum == 0) return;
  const float factor = 1 / sum;
  for (float& value : row) value *= factor;
}

}  // namespace

Status FeatureMatrix::Resize(RowType type, std::size_t rows, std::size_t dim) {
  type_ = type;
  rows_ = rows;
  dim_ = dim;
  const std::size_t wanted = rows * dim * BytesOf(type);
  if (wanted <= memory_.size_bytes()) return Status::Ok();
  memory_ = AlignedBuffer();  // before the next is taken
  RHIZOME_ASSIGN_OR_RETURN(memory_, AlignedBuffer::Allocate(wanted + wanted / kSpareShare));
  return Status::Ok();
}

std::span<std::byte> FeatureMatrix::bytes() const {
  return memory_.bytes().first(rows_ * dim_ * BytesOf(type_));
}

std::span<float> FeatureMatrix::floats() const {
  RHIZOME_CHECK(type_ == RowType::kFloat32);
  return {reinterpret_cast<float*>(memory_.bytes().data()), rows_ * dim_};
}

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
  NormalizeRows(out);
}

void FeatureDecoder::DecodeInPlace(const FeatureMatrix& rows) const {
  RHIZOME_CHECK(type() == stored_type() && rows.type() == type());
  if (normalize_) NormalizeRows(rows.floats());
}

void FeatureDecoder::NormalizeRows(std::span<float> rows) const {
  if (!normalize_) return;
  for (std::size_t at = 0; at < rows.size(); at += dim_) NormalizeRow(rows.subspan(at, dim_));
}

}  // namespace rhizome
