#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "reliability/catalog/bombs.h"
#include "reliability/harness/counts.h"

namespace rhizome::testing {
namespace {

constexpr std::uint64_t kAllowedBytes = std::uint64_t{64} << 20;

// A refusal takes microseconds, and skipping a stream that expands to 64 MiB some tenths of a
// second. The bound is far from both, and catches a loop that runs as often as a size in a header
// says.
constexpr double kAllowedSeconds = 10;

TEST(BombTest, HostileInputsAreRefusedInLittleMemory) {
  std::set<std::string> names;
  std::uint64_t max_bytes = 0;
  double max_seconds = 0;
  for (const Bomb& bomb : AllBombs()) {
    SCOPED_TRACE(bomb.name);
    EXPECT_TRUE(names.insert(bomb.name).second) << "a name twice";
    const BombOutcome outcome = Explode(bomb);
    ASSERT_TRUE(outcome.ended) << "the reader's process died";
    EXPECT_FALSE(outcome.status.ok()) << "accepted";
    EXPECT_LE(outcome.grown_bytes, bomb.declared_bytes + kAllowedBytes);
    EXPECT_LE(outcome.processor_seconds, kAllowedSeconds);
    max_bytes = std::max(max_bytes, outcome.grown_bytes);
    max_seconds = std::max(max_seconds, outcome.processor_seconds);
  }
  EXPECT_GE(names.size(), 200U);
  PrintCount("bombs", names.size());
  std::printf("most memory taken %.1f MiB, most processor time %.3f s\n",
              static_cast<double>(max_bytes) / (1 << 20), max_seconds);
}

}  // namespace
}  // namespace rhizome::testing
