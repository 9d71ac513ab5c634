#include "index/base/edge_list.h"

#include <fmt/format.h>

namespace rhizome {
namespace {

Status HasNot(const EdgeAttribute& other, std::size_t i) {
  return Status::InvalidArgument(fmt::format(
      "the column '{}' of {} values an edge has no values of edge {} for this one: it has "
      "{} edges",
      other.name(), other.dim(), i, other.size()));
}

}  // namespace

EdgeAttribute EdgeAttribute::Empty() const {
  EdgeAttribute empty(name_, dtype(), dim_);
  empty.attributes = attributes;
  if (const auto null = values_.null()) empty.values_.SetNull(*null);
  return empty;
}

void EdgeAttribute::Add(float value) {
  values_.WidenTo(DataType::kFloat32);
  values_.Add(double{value});
}

void EdgeAttribute::Add(double value) {
  values_.WidenTo(DataType::kFloat64);
  values_.Add(value);
}

Status EdgeAttribute::AddFrom(const EdgeAttribute& other, std::size_t i) {
  if (other.dim_ != dim_ || i >= other.size()) return HasNot(other, i);
  values_.WidenTo(other.dtype());
  values_.Append(other.values_, i * dim_, dim_);
  return Status::Ok();
}

Status EdgeAttribute::AddAll(const EdgeAttribute& other) {
  if (other.dim_ != dim_) return HasNot(other, 0);
  values_.WidenTo(other.dtype());
  values_.Append(other.values_, 0, other.value_count());
  return Status::Ok();
}

Status EdgeAttribute::AddBytes(DataType dtype, std::span<const std::byte> bytes) {
  if (dtype == DataType::kFloat32 || dtype == DataType::kFloat64) values_.WidenTo(dtype);
  return values_.AddBytes(dtype, bytes);
}

}  // namespace rhizome
