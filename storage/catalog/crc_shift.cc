#include "storage/catalog/crc_shift.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint32_t TimesX(std::uint32_t value) {
  return (value >> 1U) ^ (kCrcPolynomial & (0U - (value & 1U)));
}
constexpr std::uint32_t DividedByX(std::uint32_t value) {
  return value >> 31U != 0 ? ((value ^ kCrcPolynomial) << 1U) | 1U : value << 1U;
}

#if defined(__x86_64__)
// The CRC instruction multiplies an eight-byte word by x^32, and the product of two registers has
// x^-1 at bit 63. Both together multiply by x^33, so powers_ contains powers divided by x^33.
constexpr int kReducedBy = 33;

[[gnu::target("pclmul,sse4.2")]] std::uint32_t ProductByInstruction(std::uint32_t value,
                                                                    std::uint32_t power) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(value)),
                                               _mm_cvtsi32_si128(static_cast<int>(power)), 0);
  return static_cast<std::uint32_t>(
      _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product))));
}
#else
constexpr int kReducedBy = 0;
std::uint32_t ProductByInstruction(std::uint32_t, std::uint32_t) { return 0; }
#endif

/// The register after four shifts, for each value of its last four bits.
constexpr std::array<std::uint32_t, 16> kCrcOfFour = [] {
  std::array<std::uint32_t, 16> table{};
  for (std::uint32_t low = 0; low < table.size(); ++low) {
    table[low] = low;
    for (int bit = 0; bit < 4; ++bit) table[low] = TimesX(table[low]);
  }
  return table;
}();

/// Multiplies two registers, four bits at a time.
std::uint32_t Product(std::uint32_t value, std::uint32_t power) {
  std::array<std::uint32_t, 16> multiples{};
  multiples[8] = value;
  multiples[4] = TimesX(multiples[8]);
  multiples[2] = TimesX(multiples[4]);
  multiples[1] = TimesX(multiples[2]);
  for (std::size_t bits = 3; bits < multiples.size(); ++bits)
    if ((bits & (bits - 1)) != 0)
      multiples[bits] = multiples[bits & (bits - 1)] ^ multiples[bits & (0 - bits)];
  std::uint32_t product = 0;
  for (int i = 0; i < 8; ++i, power >>= 4U)
    product = (product >> 4U) ^ kCrcOfFour[product & 0xFU] ^ multiples[power & 0xFU];
  return product;
}

}  // namespace

bool CrcShifter::HasInstruction() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
#else
  return false;
#endif
}

CrcShifter::CrcShifter(std::uint64_t max_bytes, bool instruction)
    : instruction_(instruction && HasInstruction()), powers_(max_bytes + 1) {
  powers_[0] = std::uint32_t{1} << 31U;
  for (int bit = 0; instruction_ && bit < kReducedBy; ++bit) powers_[0] = DividedByX(powers_[0]);
  for (std::size_t i = 1; i < powers_.size(); ++i)
    powers_[i] = (powers_[i - 1] >> 8U) ^ kCrcOfByte[powers_[i - 1] & 0xFFU];
}

std::uint32_t CrcShifter::Shift(std::uint32_t value, std::uint64_t bytes) const {
  return instruction_ ? ProductByInstruction(value, powers_[bytes])
                      : Product(value, powers_[bytes]);
}

}  // namespace internal
}  // namespace rhizome
