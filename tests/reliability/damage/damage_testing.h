#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "reliability/damage/damage_run.h"
#include "reliability/harness/counts.h"
#include "testing/testing.h"

namespace rhizome::testing {

inline void PrintCounts(const std::string& what, const DamageCounts& counts) {
  PrintCount(what, counts.cases);
  PrintCount(what + "-found-by-reading", counts.by_reading);
  PrintCount(what + "-found-by-verify", counts.by_verify);
  PrintCount(what + "-harmless", counts.harmless);
  PrintCount(what + "-unread", counts.unread);
  PrintCount(what + "-silent", counts.silent);
}

/// Flips one in `stride` bits of about 130 KB, starting at a random one, and all bits of the files
/// that RHIZOME_FLIP names.
inline void ExpectNoFlippedBitIsSilent(std::uint64_t stride) {
  const auto store = MakeSmallStore({.vertices = 100, .edges = 4100, .dim = 24});
  ASSERT_OK(store);
  FlipPlan plan{.stride = stride, .seed = TestSeed(), .print = true};
  if (const char* only = std::getenv("RHIZOME_FLIP")) {
    plan.stride = 1;
    plan.only = only;
  }
  const DamageCounts counts = FlipBits(*store, plan);
  PrintCounts("bit-flips", counts);
  EXPECT_EQ(counts.silent, 0U);
}

/// Flips bits of the log of a killed writer, whose last writes are only in RocksDB's log.
inline void ExpectNoFlippedBitOfALogIsSilent(std::uint64_t stride) {
  const auto store = MakeSmallStore();
  ASSERT_OK(store);
  const DamageCounts counts = FlipOpenLogs(*store, stride, TestSeed());
  PrintCounts("log-bit-flips", counts);
  EXPECT_EQ(counts.silent, 0U);
}

/// Applies one in `stride` injuries, starting at a random one, and all that RHIZOME_INJURY names.
inline void ExpectNoInjuredFileIsSilent(std::uint64_t stride) {
  const auto store = MakeSmallStore();
  ASSERT_OK(store);
  std::vector<Injury> all = ListInjuries(*store, 1);
  if (std::getenv("RHIZOME_INJURY") != nullptr) stride = 1;
  std::vector<Injury> drawn;
  for (std::size_t at = TestSeed() % stride; at < all.size(); at += stride)
    drawn.push_back(std::move(all[at]));
  const DamageCounts counts = Injure(*store, drawn);
  PrintCounts("injuries", counts);
  PrintCount("injuries-unnamed", counts.unnamed);
  EXPECT_EQ(counts.unnamed, 0U);
  EXPECT_EQ(counts.silent, 0U);
}

}  // namespace rhizome::testing
