#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <string>

#include "reliability/crash/crash_run.h"
#include "reliability/harness/counts.h"
#include "testing/testing.h"

namespace rhizome::testing {

inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

inline std::string NameOfScenario(const ::testing::TestParamInfo<Scenario>& info) {
  return info.param.name;
}

/// Expects that a power cut may occur before any operation of a history, with any treatment of
/// unsynced data by the disk: acknowledged changes are there, other changes are there completely or
/// not at all, verify finds no damage and no leftovers, and the next writer works. The same holds
/// for a power cut during recovery.
inline void ExpectWholeAfterCrashes(const Scenario& scenario, CrashPlan plan) {
  plan.seed = TestSeed();
  if (const char* only = std::getenv("RHIZOME_CRASH")) plan.only = only;
  const auto history = Record(scenario);
  ASSERT_OK(history);
  const CrashCounts counts = RunCrashes(*history, plan);
  PrintCount("crash-operations", counts.operations);
  PrintCount("crash-states", counts.states);
  PrintCount("recovery-states", counts.recoveries);
  PrintCount("crash-failures", counts.failures);
  EXPECT_EQ(counts.failures, 0U);
}

}  // namespace rhizome::testing
