#include "storage/catalog/crc_shift.h"

#include <gtest/gtest.h>

#include <random>

#include "storage/base/hash.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

// Combining with zero bytes shifts the first checksum and adds the second.
TEST(CrcShifterTest, BothWaysShiftAsCombiningDoes) {
  constexpr std::uint64_t kMost = 1000;
  const CrcShifter shifters[] = {CrcShifter(kMost), CrcShifter(kMost, /*instruction=*/false)};
  if (!CrcShifter::HasInstruction()) std::puts("without the instruction: one way only");
  std::mt19937_64 rng(testing::TestSeed());
  for (std::uint64_t bytes = 0; bytes <= kMost; ++bytes) {
    for (const auto value : {std::uint32_t{0}, std::uint32_t{1}, ~std::uint32_t{0},
                             static_cast<std::uint32_t>(rng())}) {
      const std::uint32_t shifted = Crc32cCombine(value, 0, bytes);
      for (const CrcShifter& shifter : shifters)
        ASSERT_EQ(shifter.Shift(value, bytes), shifted) << value << " by " << bytes;
    }
  }
}

}  // namespace
}  // namespace rhizome
