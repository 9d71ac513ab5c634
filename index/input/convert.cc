#include "index/input/convert.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "storage/base/half.h"

namespace rhizome {
namespace {

template <typename T>
T Load(std::span<const std::byte> in, std::size_t i) {
  T value;
  std::memcpy(&value, in.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
bool Store(std::span<std::byte> out, std::size_t i, T value) {
  std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  return true;
}

template <typename T>
bool StoreInteger(std::span<std::byte> out, std::size_t i, std::int64_t value) {
  if (!std::in_range<T>(value)) return false;
  return Store(out, i, static_cast<T>(value));
}

double FloatAt(DataType from, std::span<const std::byte> in, std::size_t i) {
  switch (from) {
    case DataType::kFloat64:
      return Load<double>(in, i);
    case DataType::kFloat16:
      return HalfToFloat(Load<std::uint16_t>(in, i));
    case DataType::kBfloat16:
      return BfloatToFloat(Load<std::uint16_t>(in, i));
    default:
      return Load<float>(in, i);
  }
}

/// Returns an integer, or nullopt for a bool that is neither 0 nor 1.
std::optional<std::int64_t> IntegerAt(DataType from, std::span<const std::byte> in, std::size_t i) {
  switch (from) {
    case DataType::kInt64:
      return Load<std::int64_t>(in, i);
    case DataType::kInt32:
      return Load<std::int32_t>(in, i);
    case DataType::kUint32:
      return Load<std::uint32_t>(in, i);
    case DataType::kInt16:
      return Load<std::int16_t>(in, i);
    case DataType::kInt8:
      return Load<std::int8_t>(in, i);
    case DataType::kBool: {
      const auto value = Load<std::uint8_t>(in, i);
      return value > 1 ? std::nullopt : std::optional<std::int64_t>(value);
    }
    default:
      return Load<std::uint8_t>(in, i);
  }
}

bool PutFloat(double value, DataType to, std::span<std::byte> out, std::size_t i) {
  if (to == DataType::kFloat64) return Store(out, i, value);
  if (to == DataType::kFloat32) {
    const auto narrow = static_cast<float>(value);
    return (std::isfinite(narrow) || !std::isfinite(value)) && Store(out, i, narrow);
  }
  const float odd = RoundToOdd(value);
  const bool half = to == DataType::kFloat16;
  const std::uint16_t bits = half ? FloatToHalf(odd) : FloatToBfloat(odd);
  const float stored = half ? HalfToFloat(bits) : BfloatToFloat(bits);
  return (std::isfinite(stored) || !std::isfinite(value)) && Store(out, i, bits);
}

bool PutInteger(std::int64_t value, DataType to, std::span<std::byte> out, std::size_t i) {
  switch (to) {
    case DataType::kInt64:
      return Store(out, i, value);
    case DataType::kInt32:
      return StoreInteger<std::int32_t>(out, i, value);
    case DataType::kUint32:
      return StoreInteger<std::uint32_t>(out, i, value);
    case DataType::kInt16:
      return StoreInteger<std::int16_t>(out, i, value);
    case DataType::kInt8:
      return StoreInteger<std::int8_t>(out, i, value);
    case DataType::kUint8:
      return StoreInteger<std::uint8_t>(out, i, value);
    case DataType::kBool:
      return value >= 0 && value <= 1 && Store(out, i, static_cast<std::uint8_t>(value));
    default:
      return IsExact(value, to) && PutFloat(static_cast<double>(value), to, out, i);
  }
}

}  // namespace

bool IsFloat(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat16 || type == DataType::kBfloat16 ||
         type == DataType::kFloat64;
}

DataType EdgeDtypeOf(DataType dtype) {
  if (!IsFloat(dtype)) return DataType::kInt64;
  return dtype == DataType::kFloat64 ? DataType::kFloat64 : DataType::kFloat32;
}

bool IsExact(std::int64_t value, DataType type) {
  const int digits = type == DataType::kFloat64   ? 53
                     : type == DataType::kFloat32 ? 24
                     : type == DataType::kFloat16 ? 11
                                                  : 8;
  const std::int64_t exact = std::int64_t{1} << digits;
  return value >= -exact && value <= exact;
}

bool CanConvert(DataType from, DataType to) { return !IsFloat(from) || IsFloat(to); }

std::optional<std::size_t> ConvertElements(DataType from, std::span<const std::byte> in,
                                           DataType to, std::span<std::byte> out) {
  if (from == to && from != DataType::kBool) {
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
    return std::nullopt;
  }
  const std::size_t count = in.size() / DataTypeBytes(from);
  const bool floats = IsFloat(from);
  for (std::size_t i = 0; i < count; ++i) {
    if (floats) {
      if (!PutFloat(FloatAt(from, in, i), to, out, i)) return i;
      continue;
    }
    const auto integer = IntegerAt(from, in, i);
    if (!integer || !PutInteger(*integer, to, out, i)) return i;
  }
  return std::nullopt;
}

}  // namespace rhizome
