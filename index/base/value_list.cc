#include "index/base/value_list.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
namespace {

template <typename T>
T ElementAt(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

int WidthOf(DataType dtype) {
  return dtype == DataType::kInt64 ? 0 : dtype == DataType::kFloat32 ? 1 : 2;
}

bool IsOfList(DataType dtype) {
  return dtype == DataType::kInt64 || dtype == DataType::kFloat32 || dtype == DataType::kFloat64;
}

}  // namespace

double DecimalOf(float value) {
  if (!std::isfinite(value)) return value;
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), value);
  double decimal = 0;
  std::from_chars(text, written.ptr, decimal);
  return decimal;
}

bool IsWider(DataType b, DataType a) { return WidthOf(b) > WidthOf(a); }

template <typename T>
void ValueList::Push(T value) {
  const auto* const from = reinterpret_cast<const std::byte*>(&value);
  bytes_.insert(bytes_.end(), from, from + sizeof(T));
}

void ValueList::SetNull(std::int64_t value) {
  const auto old = std::exchange(null_, value);
  if (!old || *old == value || dtype_ != DataType::kInt64) return;
  for (std::size_t i = 0; i < size(); ++i)
    if (ElementAt<std::int64_t>(bytes_, i) == *old)
      std::memcpy(bytes_.data() + i * sizeof(value), &value, sizeof(value));
}

void ValueList::Add(std::int64_t value) {
  if (dtype_ == DataType::kInt64) return Push(value);
  if (dtype_ == DataType::kFloat32) return Push(static_cast<float>(value));
  Push(static_cast<double>(value));
}

void ValueList::Add(double value) {
  RHIZOME_CHECK(dtype_ != DataType::kInt64);
  if (dtype_ == DataType::kFloat32) return Push(static_cast<float>(value));
  Push(value);
}

void ValueList::AddNull() {
  if (dtype_ != DataType::kInt64) return Add(std::numeric_limits<double>::quiet_NaN());
  RHIZOME_CHECK(null_.has_value());
  Push(*null_);
}

Status ValueList::AddBytes(DataType dtype, std::span<const std::byte> bytes) {
  if (!IsOfList(dtype) || IsWider(dtype, dtype_))
    return Status::InvalidArgument(fmt::format("a column of {} cannot take values of {}",
                                               DataTypeName(dtype_), DataTypeName(dtype)));
  if (bytes.size() % DataTypeBytes(dtype) != 0)
    return Status::InvalidArgument(fmt::format("{} bytes are not a whole number of values of {}",
                                               bytes.size(), DataTypeName(dtype)));
  if (dtype == dtype_) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return Status::Ok();
  }
  for (std::size_t i = 0; i < bytes.size() / DataTypeBytes(dtype); ++i) {
    if (dtype == DataType::kInt64)
      Add(ElementAt<std::int64_t>(bytes, i));
    else
      Add(DecimalOf(ElementAt<float>(bytes, i)));
  }
  return Status::Ok();
}

void ValueList::Append(const ValueList& other, std::size_t first, std::size_t count) {
  const std::size_t width = DataTypeBytes(other.dtype_);
  const auto bytes = other.bytes().subspan(first * width, count * width);
  if (other.dtype_ != DataType::kInt64 || !other.null_ ||
      (dtype_ == DataType::kInt64 && null_ == other.null_)) {
    RHIZOME_CHECK(AddBytes(other.dtype_, bytes).ok());
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = ElementAt<std::int64_t>(bytes, i);
    if (value == *other.null_)
      AddNull();
    else
      Add(value);
  }
}

void ValueList::WidenTo(DataType dtype) {
  if (!IsWider(dtype, dtype_)) return;
  ValueList wide(dtype);
  wide.null_ = null_;
  wide.bytes_.reserve(size() * DataTypeBytes(dtype));
  wide.Append(*this, 0, size());
  *this = std::move(wide);
}

}  // namespace rhizome
