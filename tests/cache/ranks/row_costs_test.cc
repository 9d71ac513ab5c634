#include "cache/ranks/row_costs.h"

#include <gtest/gtest.h>

namespace rhizome {
namespace {

constexpr std::uint64_t kRowBytes = 1000;
const LinkModel kLink{.bits_per_second = 1e10, .latency_seconds = 0};

TEST(RowCostsTest, ARowOfAnotherRankIsReadGivenAndCarried) {
  const RowsOverRanks costs = WithCosts({}, ReadsOfRanks(IoMaker::kAuto), kLink, kRowBytes);
  EXPECT_NEAR(costs.local_cost, 4.8e-6 + 1000 / 4.4e9, 1e-12);
  EXPECT_NEAR(costs.remote_cost - costs.local_cost, (0.4e-6 + 1000 / 5e8) + 8000 / 1e10, 1e-12);
}

TEST(RowCostsTest, OutOfThePageCacheARowCostsAFraction) {
  const RowsOverRanks disk = WithCosts({}, ReadsOfRanks(IoMaker::kUring), kLink, kRowBytes);
  const RowsOverRanks cached = WithCosts({}, ReadsOfRanks(IoMaker::kMapped), kLink, kRowBytes);
  EXPECT_LT(cached.local_cost, disk.local_cost / 5);
  EXPECT_NEAR(disk.remote_cost - cached.remote_cost, disk.local_cost - cached.local_cost, 1e-12);
  EXPECT_GT(cached.remote_cost / cached.local_cost, 4);
}

}  // namespace
}  // namespace rhizome
