#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rhizome {
inline namespace internal {

// Numbers on disk are little-endian (storage/FORMAT.md), and whole sections are used in place.
static_assert(std::endian::native == std::endian::little, "big-endian hosts are not supported");

/// Reads a number from an address of any alignment.
template <std::integral T>
T LoadLittle(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Writes a number to an address of any alignment.
template <std::integral T>
void StoreLittle(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

/// Returns `value` rounded up to a multiple of `unit`, a power of two. The caller excludes
/// overflow.
constexpr std::uint64_t AlignUp(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

/// Returns `value` rounded down to a multiple of `unit`, a power of two.
constexpr std::uint64_t AlignDown(std::uint64_t value, std::uint64_t unit) {
  return value & ~(unit - 1);
}

}  // namespace internal
}  // namespace rhizome
