#include "reliability/allocation/allocation_run.h"
#include "reliability/crash/crash_testing.h"

namespace rhizome::testing {
namespace {

class AllocationTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(AllocationTest, EndsWithAnErrorOrTheRightResult) {
  AllocationPlan plan{.points = 60, .seed = TestSeed()};
  if (const char* only = std::getenv("RHIZOME_ALLOCATION")) plan.only = only;
  const auto history = Record(GetParam());
  ASSERT_OK(history);
  const AllocationCounts counts = RunAllocations(GetParam(), *history, plan);
  PrintCount("allocations", counts.asked);
  PrintCount("allocation-failures", counts.injected);
  PrintCount("allocation-failures-refused", counts.refused);
  EXPECT_GT(counts.asked, 0U);
  EXPECT_EQ(counts.failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(Histories, AllocationTest, ::testing::ValuesIn(Scenarios()),
                         NameOfScenario);

}  // namespace
}  // namespace rhizome::testing
