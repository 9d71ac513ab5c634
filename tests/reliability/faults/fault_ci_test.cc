#include "reliability/faults/fault_testing.h"

namespace rhizome::testing {
namespace {

class FaultTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(FaultTest, EndsWithAnErrorOrTheRightResult) { ExpectErrorsOrResults(GetParam(), 61); }

INSTANTIATE_TEST_SUITE_P(Histories, FaultTest, ::testing::ValuesIn(FaultScenarios()),
                         NameOfScenario);

}  // namespace
}  // namespace rhizome::testing
