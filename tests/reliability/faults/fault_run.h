#pragma once

#include <cstdint>
#include <string>

#include "reliability/harness/history.h"

namespace rhizome::testing {

struct FaultPlan {
  /// One in so many operations is failed, the first of them drawn by `seed`.
  std::uint64_t stride = 1;
  std::uint64_t seed = 1;

  bool stop_at_first = false;

  /// Only operations that have this in their names (FakeFileSystem::Trace).
  std::string at = {};

  /// "updates:289:5:0": only this fault, as a failure prints it.
  std::string only = {};
};

struct FaultCounts {
  std::uint64_t injected = 0;
  std::uint64_t refused = 0;   ///< histories that ended with an error
  std::uint64_t failures = 0;  ///< each printed in a line, with what repeats it
};

/// Runs a scenario again for each of its operations, reads too, which fails with EIO and four other
/// errors that are drawn (fault_kinds.h), once or from then on; reads also bring half of the bytes,
/// or none. The history must end with an error, which no failed operation makes one of damage, or
/// do what it did undisturbed; after either the store is opened, holds what was acknowledged, and
/// goes on (crash_check.h).
FaultCounts RunFaults(const Scenario& scenario, const History& history, const FaultPlan& plan);

}  // namespace rhizome::testing
