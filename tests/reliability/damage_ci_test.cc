#include "reliability/crash_testing.h"
#include "reliability/damage_run.h"

namespace rhizome::testing {
namespace {

void PrintCounts(const std::string& what, const DamageCounts& counts) {
  PrintCount(what, counts.cases);
  PrintCount(what + "-found-by-reading", counts.by_reading);
  PrintCount(what + "-found-by-verify", counts.by_verify);
  PrintCount(what + "-harmless", counts.harmless);
  PrintCount(what + "-unread", counts.unread);
  PrintCount(what + "-silent", counts.silent);
}

TEST(DamageTest, NoFlippedBitIsSilent) {
  // Every bit of about 130 KB.
  const auto store = MakeSmallStore({.vertices = 100, .edges = 4100, .dim = 24});
  ASSERT_OK(store);
  FlipPlan plan{.seed = TestSeed(), .print = true};
  if (const char* only = std::getenv("RHIZOME_FLIP")) plan.only = only;
  const DamageCounts counts = FlipBits(*store, plan);
  PrintCounts("bit-flips", counts);
  EXPECT_EQ(counts.silent, 0U);
}

// Of a writer that was killed, whose last writes are in RocksDB's log only.
TEST(DamageTest, NoFlippedBitOfALogIsSilent) {
  const auto store = MakeSmallStore();
  ASSERT_OK(store);
  const DamageCounts counts = FlipOpenLogs(*store, 1, TestSeed());
  PrintCounts("log-bit-flips", counts);
  EXPECT_EQ(counts.silent, 0U);
}

TEST(DamageTest, NoInjuredFileIsSilent) {
  const auto store = MakeSmallStore();
  ASSERT_OK(store);
  const DamageCounts counts = Injure(*store, ListInjuries(*store, 1));
  PrintCounts("injuries", counts);
  PrintCount("injuries-unnamed", counts.unnamed);
  EXPECT_EQ(counts.unnamed, 0U);
  EXPECT_EQ(counts.silent, 0U);
}

}  // namespace
}  // namespace rhizome::testing
