#include "reliability/crash/crash_testing.h"

namespace rhizome::testing {
namespace {

class CrashLongTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(CrashLongTest, LeavesAWholeStore) {
  ExpectWholeAfterCrashes(GetParam(), {.draws = 20, .recoveries_one_in = 30});
}

INSTANTIATE_TEST_SUITE_P(Histories, CrashLongTest, ::testing::ValuesIn(Scenarios()),
                         NameOfScenario);

}  // namespace
}  // namespace rhizome::testing
