#include <fmt/format.h>

#include <cstring>

#include "cache/kernels/simd.h"
#include "rhizome/loader.h"
#include "storage/base/check.h"
#include "storage/io/io_queue.h"

namespace rhizome {

FeatureRows::FeatureRows(HeldRows held, DataType type, std::size_t dim)
    : type_(type), dim_(dim), rows_(held.slots().size()), held_(std::move(held)) {
  if (held_.row_bytes() <= row_bytes()) return;
  place_.assign(held_.slots().begin(), held_.slots().end());
  PlaceInWiderRows();
}

FeatureRows::FeatureRows(HeldRows held, DataType type, std::size_t dim,
                         std::vector<std::uint32_t> row_of)
    : type_(type),
      dim_(dim),
      rows_(row_of.size()),
      held_(std::move(held)),
      place_(std::move(row_of)) {
  for (std::uint32_t& place : place_) place = held_.slots()[place];
  if (held_.row_bytes() > row_bytes()) PlaceInWiderRows();
}

// A stored row of 8 bytes a value is decoded at the front of its place in the cache, which has the
// bytes of two decoded rows.
void FeatureRows::PlaceInWiderRows() {
  RHIZOME_CHECK(held_.row_bytes() % row_bytes() == 0);
  const auto factor = static_cast<std::uint32_t>(held_.row_bytes() / row_bytes());
  for (std::uint32_t& place : place_) place *= factor;
}

Result<FeatureRows> FeatureRows::Own(DataType type, std::size_t rows, std::size_t dim) {
  FeatureRows made;
  made.type_ = type;
  made.dim_ = dim;
  made.rows_ = rows;
  RHIZOME_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(rows * made.row_bytes()));
  const auto memory = std::make_shared<AlignedBuffer>(std::move(buffer));
  made.own_ = memory->bytes();
  made.own_memory_ = memory;
  return made;
}

std::span<const float> FeatureRows::floats(std::size_t i) const {
  RHIZOME_CHECK(type_ == DataType::kFloat32);
  return {reinterpret_cast<const float*>(row(i).data()), dim_};
}

std::span<float> FeatureRows::own_floats() const {
  RHIZOME_CHECK(type_ == DataType::kFloat32);
  return {reinterpret_cast<float*>(own_.data()), rows_ * dim_};
}

Status FeatureRows::CopyTo(std::span<float> out) const {
  if (out.size() != rows_ * dim_) {
    return Status::InvalidArgument(fmt::format(
        "{} rows of {} numbers do not fill the {} numbers of output", rows_, dim_, out.size()));
  }
  for (std::size_t i = 0; i < rows_; ++i) {
    float* const to = out.data() + i * dim_;
    if (type_ == DataType::kFloat16) {
      Kernels().widen(RowType::kFloat16, row(i).data(), dim_, to);
    } else {
      std::memcpy(to, row(i).data(), row_bytes());
    }
  }
  return Status::Ok();
}

}  // namespace rhizome
