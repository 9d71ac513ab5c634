#include "index/input/convert.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "storage/base/half.h"

namespace rhizome {
namespace {

bool IsFloat(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat16; }

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
  if (value < std::numeric_limits<T>::min() ||
      value > static_cast<std::int64_t>(std::numeric_limits<T>::max()))
    return false;
  return Store(out, i, static_cast<T>(value));
}

float FloatAt(DataType from, std::span<const std::byte> in, std::size_t i) {
  return from == DataType::kFloat32 ? Load<float>(in, i) : HalfToFloat(Load<std::uint16_t>(in, i));
}

std::int64_t IntegerAt(DataType from, std::span<const std::byte> in, std::size_t i) {
  if (from == DataType::kInt64) return Load<std::int64_t>(in, i);
  if (from == DataType::kInt32) return Load<std::int32_t>(in, i);
  if (from == DataType::kUint32) return Load<std::uint32_t>(in, i);
  return Load<std::uint8_t>(in, i);
}

bool PutFloat(float value, DataType to, std::span<std::byte> out, std::size_t i) {
  if (to == DataType::kFloat32) return Store(out, i, value);
  const std::uint16_t half = FloatToHalf(value);
  if (std::isfinite(value) && !std::isfinite(HalfToFloat(half))) return false;
  return Store(out, i, half);
}

bool PutInteger(std::int64_t value, DataType to, std::span<std::byte> out, std::size_t i) {
  if (to == DataType::kInt64) return Store(out, i, value);
  if (to == DataType::kInt32) return StoreInteger<std::int32_t>(out, i, value);
  if (to == DataType::kUint32) return StoreInteger<std::uint32_t>(out, i, value);
  if (to == DataType::kUint8) return StoreInteger<std::uint8_t>(out, i, value);
  // Every integer up to this bound is exact in the significand.
  const std::int64_t exact = to == DataType::kFloat32 ? 1 << 24 : 1 << 11;
  return value >= -exact && value <= exact && PutFloat(static_cast<float>(value), to, out, i);
}

}  // namespace

bool CanConvert(DataType from, DataType to) { return !IsFloat(from) || IsFloat(to); }

std::optional<std::size_t> ConvertElements(DataType from, std::span<const std::byte> in,
                                           DataType to, std::span<std::byte> out) {
  if (from == to) {
    std::memcpy(out.data(), in.data(), in.size());
    return std::nullopt;
  }
  const std::size_t count = in.size() / DataTypeBytes(from);
  for (std::size_t i = 0; i < count; ++i) {
    const bool stored = IsFloat(from) ? PutFloat(FloatAt(from, in, i), to, out, i)
                                      : PutInteger(IntegerAt(from, in, i), to, out, i);
    if (!stored) return i;
  }
  return std::nullopt;
}

}  // namespace rhizome
