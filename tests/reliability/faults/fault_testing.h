#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "reliability/crash/crash_testing.h"
#include "reliability/faults/fault_run.h"

namespace rhizome::testing {

/// Tries every fault at one in `stride` operations of a history, starting at a random one.
inline void ExpectErrorsOrResults(const Scenario& scenario, std::uint64_t stride) {
  FaultPlan plan{.stride = stride, .seed = TestSeed()};
  if (const char* only = std::getenv("RHIZOME_FAULT")) plan = {.only = only};
  const auto history = Record(scenario);
  ASSERT_OK(history);
  const FaultCounts counts = RunFaults(scenario, *history, plan);
  PrintCount("faults", counts.injected);
  PrintCount("faults-refused", counts.refused);
  EXPECT_EQ(counts.failures, 0U);
}

}  // namespace rhizome::testing
