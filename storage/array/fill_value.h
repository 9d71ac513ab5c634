#pragma once

#include <cstdint>
#include <limits>

#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The bits of a quiet NaN.
template <typename Bits>
struct NanBits {
  Bits bits;
};

/// Returns visit(value) for the fill value of arrays of form 2 (FORMAT.md, `fill_value`): a NanBits
/// for floats, otherwise the least signed or the greatest unsigned number. Except for bool, it
/// cannot be mistaken for a row.
template <typename Visit>
auto VisitFillValue(DataType dtype, const Visit& visit) {
  switch (dtype) {
    case DataType::kFloat32:
      return visit(NanBits<std::uint32_t>{0x7FC00000});
    case DataType::kFloat16:
      return visit(NanBits<std::uint16_t>{0x7E00});
    case DataType::kBfloat16:
      return visit(NanBits<std::uint16_t>{0x7FC0});
    case DataType::kFloat64:
      return visit(NanBits<std::uint64_t>{0x7FF8000000000000});
    case DataType::kInt64:
      return visit(std::numeric_limits<std::int64_t>::min());
    case DataType::kInt32:
      return visit(std::numeric_limits<std::int32_t>::min());
    case DataType::kInt16:
      return visit(std::numeric_limits<std::int16_t>::min());
    case DataType::kInt8:
      return visit(std::numeric_limits<std::int8_t>::min());
    case DataType::kUint32:
      return visit(std::numeric_limits<std::uint32_t>::max());
    case DataType::kUint8:
      return visit(std::numeric_limits<std::uint8_t>::max());
    default:
      return visit(false);
  }
}

}  // namespace internal
}  // namespace rhizome
