#pragma once

#include <cstdint>
#include <string>

#include "reliability/harness/history.h"

namespace rhizome::testing {

struct FaultPlan {
  /// One in so many operations fails; `seed` draws the first.
  std::uint64_t stride = 1;
  std::uint64_t seed = 1;

  bool stop_at_first = false;

  /// Only operations with this in their names (FakeFileSystem::Trace).
  std::string at = {};

  /// "updates:289:5:0" runs only this fault, as a failure prints it.
  std::string only = {};
};

struct FaultCounts {
  std::uint64_t injected = 0;
  std::uint64_t refused = 0;   ///< histories that ended with an error
  std::uint64_t failures = 0;  ///< each printed in a line, with what repeats it
};

/// Runs a scenario again for each of its operations, reads included, which fails with EIO and with
/// four other errors that are drawn (fault_kinds.h), once or from then on; reads also return half
/// of the bytes, or none. The history must end with an error, which is never one of damage after a
/// failed operation, or do what it does undisturbed. After either the store is opened, holds what
/// was acknowledged, and accepts further writes (crash_check.h).
FaultCounts RunFaults(const Scenario& scenario, const History& history, const FaultPlan& plan);

}  // namespace rhizome::testing
