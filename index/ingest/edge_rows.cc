#include "index/ingest/edge_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "index/input/number.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kRowBlockBytes = std::uint64_t{128} << 10;

}  // namespace

Status EdgeRows::Refuse(std::string_view reason) const {
  return Status::InvalidArgument(fmt::format("{}: {}", file().path.string(), reason));
}

Status EdgeRows::Open() {
  source_.reset();
  rows_taken_ = block_rows_ = block_taken_ = 0;
  const ArrayFile& rows = file();
  if (rows.path.empty() && !rows.open) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(source_, OpenRows(fs_, rows));
  if (source_->dim == array_.dim && CanConvert(source_->dtype, array_.dtype)) return Status::Ok();
  return Refuse(fmt::format("{} columns of {} are expected, but there are {} of {}", array_.dim,
                            DataTypeName(array_.dtype), source_->dim,
                            DataTypeName(source_->dtype)));
}

Status EdgeRows::BeginFile(std::size_t number) {
  number_ = number;
  return number == 0 || by_edge_file() ? Open() : Status::Ok();
}

Status EdgeRows::Fill() {
  const std::uint64_t row_bytes = array_.dim * DataTypeBytes(source_->dtype);
  block_rows_ =
      std::min(source_->rows - rows_taken_, std::max<std::uint64_t>(kRowBlockBytes / row_bytes, 1));
  block_taken_ = 0;
  if (block_rows_ == 0)
    return Refuse(fmt::format("{} rows, but there are more edges", source_->rows));
  std::vector<std::byte>& read = source_->dtype == array_.dtype ? block_ : converted_;
  read.resize(block_rows_ * row_bytes);
  RHIZOME_RETURN_IF_ERROR(source_->Read(read));
  rows_taken_ += block_rows_;
  if (source_->dtype == array_.dtype) return Status::Ok();
  block_.resize(block_rows_ * array_.dim * DataTypeBytes(array_.dtype));
  const auto refused = ConvertElements(source_->dtype, converted_, array_.dtype, block_);
  if (!refused) return CheckNonzero();
  return Refuse(fmt::format("row {}: a value cannot be converted to {} without loss",
                            rows_taken_ - block_rows_ + *refused / array_.dim,
                            DataTypeName(array_.dtype)));
}

// For weights and attributes of edges, 0 has a meaning of its own. (A float16 is never too small.)
Status EdgeRows::CheckNonzero() const {
  if (source_->dtype != DataType::kFloat64 || array_.dtype != DataType::kFloat32)
    return Status::Ok();
  for (std::size_t i = 0; i * sizeof(double) < converted_.size(); ++i) {
    double wide = 0;
    std::memcpy(&wide, converted_.data() + i * sizeof(wide), sizeof(wide));
    if (VanishesInFloat32(wide))
      return Refuse(fmt::format("row {}: {} {}", rows_taken_ - block_rows_ + i / array_.dim, wide,
                                kVanishes));
  }
  return Status::Ok();
}

Result<std::span<const std::byte>> EdgeRows::Next() {
  const std::size_t row_bytes = array_.dim * DataTypeBytes(array_.dtype);
  if (!source_) {
    block_.assign(row_bytes, std::byte{0});
    return std::span<const std::byte>(block_);
  }
  if (block_taken_ == block_rows_) RHIZOME_RETURN_IF_ERROR(Fill());
  return std::span<const std::byte>(block_).subspan(block_taken_++ * row_bytes, row_bytes);
}

Status EdgeRows::AppendTo(EdgeAttribute& column) {
  RHIZOME_ASSIGN_OR_RETURN(const auto row, Next());
  return column.AddBytes(array_.dtype, row);
}

Status EdgeRows::AppendTo(std::vector<float>& weights) {
  RHIZOME_ASSIGN_OR_RETURN(const auto row, Next());
  float weight = 0;
  std::memcpy(&weight, row.data(), sizeof(weight));
  if (!std::isfinite(weight))
    return Refuse(fmt::format("row {}: the weight {} is not a finite number",
                              rows_taken_ - block_rows_ + block_taken_ - 1, weight));
  weights.push_back(weight);
  return Status::Ok();
}

Status EdgeRows::EndFile(bool last) {
  if (!source_ || (!by_edge_file() && !last)) return Status::Ok();
  const std::uint64_t used = rows_taken_ - block_rows_ + block_taken_;
  if (used < source_->rows)
    return Refuse(fmt::format("{} rows, but there are {} edges", source_->rows, used));
  const Status finished = source_->Finish();
  source_.reset();
  return finished;
}

Status CheckEdgeArrays(const IngestOptions& options) {
  for (const EdgeArrayFile& array : options.edge_arrays) {
    const auto refuse = [&](std::string_view reason) {
      return Status::InvalidArgument(fmt::format("edge array '{}': {}", array.name, reason));
    };
    if (array.dtype != DataType::kInt64 && array.dtype != DataType::kFloat32 &&
        array.dtype != DataType::kFloat64)
      return refuse(fmt::format("{} is not int64, float32 or float64; convert it to one of them",
                                DataTypeName(array.dtype)));
    if (array.dim == 0) return refuse("its rows have no columns");
    if (array.name == "weight" && (array.dim != 1 || array.dtype != DataType::kFloat32))
      return refuse("a weight must be one float32 per edge");
    if (array.name == "time" && (array.dim != 1 || array.dtype != DataType::kInt64))
      return refuse("a time must be one int64 per edge");
    if (array.files.size() != 1 && array.files.size() != options.edges.size())
      return refuse(fmt::format("{} files of rows for {} edge files; give one for each",
                                array.files.size(), options.edges.size()));
    if (options.max_bad_lines > 0)
      return refuse("rows cannot be matched to edges if bad lines are skipped; allow no bad lines");
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
