#include <gtest/gtest.h>

#include <cstdlib>

#include "reliability/harness/counts.h"
#include "reliability/upkeep/upkeep_run.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

UpkeepPlan Plan(std::uint64_t stride) {
  const char* const only = std::getenv("RHIZOME_UPKEEP");
  if (only != nullptr) stride = 1;
  return {.stride = stride, .seed = TestSeed(), .only = only != nullptr ? only : ""};
}

TEST(UpkeepTest, AFailedOperationEndsInAnErrorOrTheRightResult) {
  std::uint64_t cases = 0;
  std::uint64_t refused = 0;
  const UpkeepPlan plan = Plan(211);
  for (const Upkeep& upkeep : Upkeeps()) {
    SCOPED_TRACE(upkeep.name);
    const UpkeepCounts counts = RunUpkeepFaults(upkeep, plan);
    EXPECT_EQ(counts.failures, 0U);
    cases += counts.cases;
    refused += counts.refused;
  }
  PrintCount("upkeep-faults", cases);
  PrintCount("upkeep-faults-refused", refused);
}

TEST(UpkeepTest, ACrashLeavesWhatAnotherTryEnds) {
  std::uint64_t cases = 0;
  const UpkeepPlan plan = Plan(31);
  for (const Upkeep& upkeep : Upkeeps()) {
    SCOPED_TRACE(upkeep.name);
    const UpkeepCounts counts = RunUpkeepCrashes(upkeep, plan);
    EXPECT_EQ(counts.failures, 0U);
    cases += counts.cases;
  }
  PrintCount("upkeep-crashes", cases);
}

}  // namespace
}  // namespace rhizome::testing
