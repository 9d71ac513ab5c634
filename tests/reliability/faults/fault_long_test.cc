#include "reliability/faults/fault_testing.h"

namespace rhizome::testing {
namespace {

class FaultLongTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(FaultLongTest, EndsWithAnErrorOrTheRightResult) { ExpectErrorsOrResults(GetParam(), 1); }

INSTANTIATE_TEST_SUITE_P(Histories, FaultLongTest, ::testing::ValuesIn(FaultScenarios()),
                         NameOfScenario);

}  // namespace
}  // namespace rhizome::testing
