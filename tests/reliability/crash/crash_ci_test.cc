#include "reliability/crash/crash_testing.h"

namespace rhizome::testing {
namespace {

class CrashTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(CrashTest, LeavesAWholeStore) {
  ExpectWholeAfterCrashes(GetParam(), {.draws = 1, .most_crashes = 1000, .recoveries_one_in = 250});
}

INSTANTIATE_TEST_SUITE_P(Histories, CrashTest, ::testing::ValuesIn(Scenarios()), NameOfScenario);

}  // namespace
}  // namespace rhizome::testing
