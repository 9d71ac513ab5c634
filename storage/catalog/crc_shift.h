#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace rhizome::inline internal {

/// The polynomial of CRC-32C with its bits reversed, as everywhere: bit 31 is x^0.
inline constexpr std::uint32_t kCrcPolynomial = 0x82F63B78U;

/// What each byte of a CRC's register is after eight shifts.
inline constexpr std::array<std::uint32_t, 256> kCrcOfByte = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t low = 0; low < table.size(); ++low) {
    table[low] = low;
    for (int bit = 0; bit < 8; ++bit)
      table[low] = (table[low] >> 1U) ^ (kCrcPolynomial & (0U - (table[low] & 1U)));
  }
  return table;
}();

/// What a CRC's register becomes as zero bytes follow: its product with x^(8 bytes). For many
/// registers and short lengths; Crc32cCombine (hash.h) is for any. Source: M. Adler's
/// crc32_combine in zlib; by Intel's carry-less multiplication where the processor has it, which
/// takes about a tenth of the time. Threads: const.
class CrcShifter {
 public:
  static bool HasInstruction();

  /// For lengths up to `max_bytes`. `instruction`: false for the other way, which all processors
  /// have.
  explicit CrcShifter(std::uint64_t max_bytes, bool instruction = HasInstruction());

  std::uint32_t Shift(std::uint32_t value, std::uint64_t bytes) const;

 private:
  const bool instruction_;
  std::vector<std::uint32_t> powers_;  // of x, by bytes
};

}  // namespace rhizome::inline internal
