#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace rhizome {
inline namespace internal {

/// The polynomial of CRC-32C with its bits reversed, as in all registers here: bit 31 is x^0.
inline constexpr std::uint32_t kCrcPolynomial = 0x82F63B78U;

/// The register after eight shifts, for each value of its last byte.
inline constexpr std::array<std::uint32_t, 256> kCrcOfByte = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t low = 0; low < table.size(); ++low) {
    table[low] = low;
    for (int bit = 0; bit < 8; ++bit)
      table[low] = (table[low] >> 1U) ^ (kCrcPolynomial & (0U - (table[low] & 1U)));
  }
  return table;
}();

/// Computes the register of a CRC after a given number of zero bytes, that is, its product with
/// x^(8 bytes). Suited to many registers and short lengths; for arbitrary lengths use Crc32cCombine
/// (hash.h). Uses Intel's carry-less multiplication if the processor has it, which takes about a
/// tenth of the time. Source: M. Adler's crc32_combine in zlib. Threads: const functions may be
/// called from many threads.
class CrcShifter {
 public:
  static bool HasInstruction();

  /// Prepares for lengths up to `max_bytes`; memory: 4 bytes per length. `instruction` = false
  /// computes without the special instructions.
  explicit CrcShifter(std::uint64_t max_bytes, bool instruction = HasInstruction());

  std::uint32_t Shift(std::uint32_t value, std::uint64_t bytes) const;

 private:
  const bool instruction_;
  std::vector<std::uint32_t> powers_;  // entry i: x^(8 i), see kReducedBy
};

}  // namespace internal
}  // namespace rhizome
