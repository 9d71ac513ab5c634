#include "cache/tables/keyed_permutation.h"

#include <algorithm>
#include <bit>

#include "storage/base/check.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {
namespace {

// Four rounds suffice for large domains. Halves of few bits need more of them, and halves of one or
// two bits are not random after any number that is affordable.
constexpr std::uint32_t kRounds = 10;
constexpr std::uint32_t kMinBits = 6;

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t size, std::uint64_t key) : size_(size), key_(key) {
  RHIZOME_CHECK(size >= 1 && size <= std::uint64_t{1} << 62);
  const std::uint32_t bits =
      std::max(kMinBits, static_cast<std::uint32_t>(std::bit_width(size - 1)));
  low_bits_ = (bits + 1) / 2;
  high_bits_ = bits / 2;
}

std::uint64_t KeyedPermutation::Encrypt(std::uint64_t word) const {
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits_) - 1;
  const std::uint64_t high_mask = (std::uint64_t{1} << high_bits_) - 1;
  std::uint64_t low = word & low_mask;
  std::uint64_t high = word >> low_bits_;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    // The upper bits of a mixed word, which depend on all of its input.
    const std::uint64_t key = SplitMix64(key_, round);
    if (round % 2 == 0) {
      low ^= (Mix64(key ^ high) >> 32) & low_mask;
    } else {
      high ^= (Mix64(key ^ low) >> 32) & high_mask;
    }
  }
  return high << low_bits_ | low;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t position) const {
  RHIZOME_DCHECK(position < size_);
  std::uint64_t word = position;
  do {
    word = Encrypt(word);
  } while (word >= size_);
  return word;
}

}  // namespace internal
}  // namespace rhizome
