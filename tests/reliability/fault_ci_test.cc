#include "reliability/crash_testing.h"
#include "reliability/fault_run.h"

namespace rhizome::testing {
namespace {

class FaultTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(FaultTest, EndsWithAnErrorOrTheRightResult) {
  FaultPlan plan{.stride = 3, .seed = TestSeed()};
  if (const char* only = std::getenv("RHIZOME_FAULT")) plan = {.only = only};
  const auto history = Record(GetParam());
  ASSERT_OK(history);
  const FaultCounts counts = RunFaults(GetParam(), *history, plan);
  PrintCount("faults", counts.injected);
  PrintCount("faults-refused", counts.refused);
  EXPECT_EQ(counts.failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(Histories, FaultTest, ::testing::ValuesIn(Scenarios()), NameOfScenario);

}  // namespace
}  // namespace rhizome::testing
