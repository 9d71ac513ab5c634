#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "reliability/crash/crash_testing.h"
#include "reliability/faults/fault_run.h"

namespace rhizome::testing {

/// The scenarios in which the disk may fail. In "bound" the store is opened so often that RocksDB
/// compacts the catalogue in the background; its debug assertions abort if the disk fails then.
inline std::vector<Scenario> FaultScenarios() {
  std::vector<Scenario> scenarios = Scenarios();
  std::erase_if(scenarios, [](const Scenario& scenario) { return scenario.name == "bound"; });
  return scenarios;
}

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
