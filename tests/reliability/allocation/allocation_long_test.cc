// Each test makes every eighth allocation of a history fail, once, and once with all later ones;
// the eight tests of a history cover all allocations.

#include <string>
#include <tuple>

#include "reliability/allocation/allocation_run.h"
#include "reliability/crash/crash_testing.h"

namespace rhizome::testing {
namespace {

constexpr std::uint64_t kSlicesOfAllocations = 8;

/// A history, and the first of its allocations that fails (every eighth from there on).
class AllocationLongTest : public ::testing::TestWithParam<std::tuple<Scenario, std::uint64_t>> {};

TEST_P(AllocationLongTest, EndsWithAnErrorOrTheRightResult) {
  const auto& [scenario, slice] = GetParam();
  const auto history = Record(scenario);
  ASSERT_OK(history);
  const AllocationCounts counts =
      RunAllocations(scenario, *history, {.stride = kSlicesOfAllocations, .seed = slice});
  PrintCount("allocation-failures", counts.injected);
  PrintCount("allocation-failures-refused", counts.refused);
  EXPECT_GT(counts.asked, 0U);
  EXPECT_EQ(counts.failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(Histories, AllocationLongTest,
                         ::testing::Combine(::testing::ValuesIn(Scenarios()),
                                            ::testing::Range(std::uint64_t{0},
                                                             kSlicesOfAllocations)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace rhizome::testing
