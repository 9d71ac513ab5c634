#include "index/topology/degrees.h"

#include <random>
#include <thread>
#include <vector>

#include "testing/testing.h"

namespace rhizome {
namespace {

TEST(DegreesTest, CountsAboveAndBelowTheWidthAreKept) {
  Degrees degrees(4);
  for (int i = 0; i < 65'534; ++i) degrees.Increment(1);
  EXPECT_EQ(degrees[1], 65'534U);
  for (int i = 0; i < 3; ++i) degrees.Increment(1);
  EXPECT_EQ(degrees[1], 65'537U);
  for (int i = 0; i < 200'000; ++i) degrees.Increment(3);
  degrees.Increment(0);
  EXPECT_EQ(degrees[0], 1U);
  EXPECT_EQ(degrees[2], 0U);
  EXPECT_EQ(degrees[3], 200'000U);
}

TEST(DegreesTest, OtherOrdersHaveTheSameDegrees) {
  std::mt19937_64 rng(testing::TestSeed());
  std::vector<std::uint64_t> values(1000);
  for (std::uint64_t& value : values) value = rng() % 3 == 0 ? rng() : rng() % 70'000;
  values[0] = UINT16_MAX;
  values[1] = UINT16_MAX - 1;
  const Degrees degrees(values);
  const Degrees reversed = degrees.Reordered([](std::uint64_t i) { return 999 - i; });
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(degrees[i], values[i]);
    EXPECT_EQ(reversed[i], values[999 - i]);
  }
}

TEST(DegreesTest, ThreadsAddToTheSameDegrees) {
  std::mt19937_64 rng(testing::TestSeed());
  std::vector<std::uint64_t> steps(64);
  for (std::uint64_t& step : steps) step = rng() % 5000;
  Degrees degrees(3);
  Mutex mutex;
  const auto add = [&] {
    for (const std::uint64_t step : steps) {
      degrees.AddShared(0, step, mutex);
      degrees.AddShared(1, 1, mutex);
      degrees.AddShared(2, step << 20, mutex);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(add);
  for (std::thread& thread : threads) thread.join();
  std::uint64_t sum = 0;
  for (const std::uint64_t step : steps) sum += step;
  EXPECT_EQ(degrees[0], 4 * sum);
  EXPECT_EQ(degrees[1], 4 * 64U);
  EXPECT_EQ(degrees[2], 4 * (sum << 20));
}

}  // namespace
}  // namespace rhizome
