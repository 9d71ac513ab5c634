#include "tools/bench/cache/bench_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

// Tests of the order that `bench tables` compares with.

namespace rhizome {
namespace {

TEST(BetaOrderTest, EachTwoPartsAreInTheBufferTogether) {
  for (std::uint32_t parts = 3; parts < 40; ++parts) {
    for (std::uint32_t buffer = 2; buffer < parts; ++buffer) {
      std::set<std::uint32_t> held;
      for (std::uint32_t part = 0; part < buffer; ++part) held.insert(part);
      std::vector<bool> met(std::size_t{parts} * parts);
      const auto meet = [&] {
        for (const std::uint32_t a : held)
          for (const std::uint32_t b : held) met[a * parts + b] = true;
      };
      meet();
      const std::vector<BetaSwap> swaps = BetaOrder(parts, buffer);
      for (const BetaSwap& swap : swaps) {
        ASSERT_EQ(held.erase(swap.out), 1U);
        ASSERT_TRUE(held.insert(swap.in).second);
        meet();
      }
      EXPECT_EQ(std::count(met.begin(), met.end(), false), 0) << parts << " " << buffer;
      // A swap creates at most buffer - 1 new pairs.
      const double pairs = parts * (parts - 1) / 2.0 - buffer * (buffer - 1) / 2.0;
      EXPECT_GE(static_cast<double>(swaps.size()) * (buffer - 1), pairs);
    }
  }
}

// The figures that were computed from Marius' own code, for 512 parts.
TEST(BetaOrderTest, ReadsWhatMariusReads) {
  const auto reads = [](std::uint32_t buffer) {
    return static_cast<double>(buffer + BetaOrder(512, buffer).size()) / 512;
  };
  EXPECT_NEAR(reads(128), 2.51, .005);
  EXPECT_NEAR(reads(64), 4.56, .006);
  EXPECT_NEAR(reads(32), 8.73, .006);
}

}  // namespace
}  // namespace rhizome
