#include "storage/maintenance/byte_repair.h"

#include <array>

#include "storage/base/hash.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The usual table of a table-driven CRC, which maps a byte to its contribution to the shift
/// register, and its inverse.
struct ByteTable {
  std::array<std::uint32_t, 256> sum{};
  std::array<std::uint8_t, 256> of_top{};  // byte whose `sum` has this top byte; all differ

  ByteTable() {
    constexpr std::uint32_t kPolynomial = 0x82F63B78;  // CRC-32C, reflected
    for (std::uint32_t byte = 0; byte < sum.size(); ++byte) {
      std::uint32_t state = byte;
      for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
      sum[byte] = state;
      of_top[state >> 24] = static_cast<std::uint8_t>(byte);
    }
  }

  /// Returns the state that one zero byte turns into `after`.
  std::uint32_t Before(std::uint32_t after) const {
    const std::uint8_t low = of_top[after >> 24];
    return (after ^ sum[low]) << 8 | low;
  }
};

}  // namespace

bool CorrectByte(std::span<std::byte> bytes, std::uint32_t crc32c,
                 const std::function<bool()>& accept) {
  static const ByteTable kTable;
  std::uint32_t difference = Crc32c(bytes) ^ crc32c;
  if (difference == 0) return accept();
  for (std::size_t at = bytes.size(); at-- > 0;) {
    // `difference` is now the difference of the registers after byte `at`. A change of only this
    // byte explains it if the entry of some `change` in the table equals it.
    const std::uint8_t change = kTable.of_top[difference >> 24];
    if (kTable.sum[change] == difference) {
      bytes[at] ^= std::byte{change};
      if (accept()) return true;
      bytes[at] ^= std::byte{change};
    }
    difference = kTable.Before(difference);
  }
  return false;
}

}  // namespace internal
}  // namespace rhizome
