#include "cache/policy/sampled_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "cache/policy/replay.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

// Key k is requested in the steps of the binary digits of k, so that the key of a number follows
// from its steps.
TEST(SampledTraceTest, KeepsAllAccessesToSomeKeysInTheirOrder) {
  constexpr std::size_t kSteps = 12;
  Trace trace;
  for (std::size_t s = 0; s < kSteps; ++s) {
    std::vector<CacheKey> keys;
    for (CacheKey key = 1; key < CacheKey{1} << kSteps; ++key)
      if ((key >> s & 1) != 0) keys.push_back(key);
    trace.AddStep(keys);
  }
  for (const std::uint64_t one_in : {1, 3, 8}) {
    const SampledTrace sampled = SampleKeys(trace, one_in);
    ASSERT_EQ(sampled.trace.steps(), kSteps);
    std::vector<CacheKey> key_of(sampled.key_count, 0);
    for (std::size_t s = 0; s < kSteps; ++s)
      for (const CacheKey number : sampled.trace.step(s))
        key_of.at(static_cast<std::size_t>(number)) |= CacheKey{1} << s;
    EXPECT_TRUE(std::ranges::is_sorted(key_of));
    EXPECT_EQ(std::set<CacheKey>(key_of.begin(), key_of.end()).size(), key_of.size());
    const double share = static_cast<double>(key_of.size()) * static_cast<double>(one_in) /
                         static_cast<double>((1 << kSteps) - 1);
    EXPECT_NEAR(share, 1, one_in == 1 ? 1e-9 : .2);
  }
}

TEST(SampledTraceTest, ReadsAreAboutThePartOfTheWhole) {
  constexpr std::uint64_t kKeys = 40'000;
  std::mt19937_64 random(testing::TestSeed());
  std::uniform_real_distribution<double> unit(0, 1);
  Trace trace;
  for (int s = 0; s < 24; ++s) {
    std::set<CacheKey> keys;
    while (keys.size() < 4000)
      keys.insert(static_cast<CacheKey>(std::pow(unit(random), 3) * static_cast<double>(kKeys)));
    trace.AddStep(std::vector<CacheKey>(keys.begin(), keys.end()));
  }
  constexpr std::uint64_t kOneIn = 4;
  const SampledTrace sampled = SampleKeys(trace, kOneIn);
  for (const PolicyKind kind : {PolicyKind::kBelady, PolicyKind::kLru, PolicyKind::kStatic}) {
    for (const std::uint64_t frames : {1000, 4000, 12'000}) {
      const auto rows = [&](const Trace& replayed, std::uint64_t keys, std::uint64_t count) {
        const PolicyOptions options{.kind = kind,
                                    .frame_count = static_cast<std::uint32_t>(count),
                                    .key_count = keys,
                                    .unit_bytes = 64};
        const auto replay = ReplaySuperbatches(replayed, 8, options);
        EXPECT_OK(replay);
        return static_cast<double>(replay ? replay->rows : 0);
      };
      const double whole = rows(trace, kKeys, frames);
      const double part = rows(sampled.trace, sampled.key_count, frames / kOneIn);
      EXPECT_NEAR(part * kOneIn / whole, 1, .08) << PolicyName(kind) << ", " << frames;
    }
  }
}

}  // namespace
}  // namespace rhizome
