#pragma once

#include <cstdint>
#include <string>

#include "reliability/harness/history.h"

namespace rhizome::testing {

struct FaultPlan {
  /// One in this many operations fails; `seed` selects the first.
  std::uint64_t stride = 1;
  std::uint64_t seed = 1;

  bool stop_at_first = false;

  /// Only operations with this text in their names (FakeFileSystem::Trace).
  std::string at = {};

  /// "updates:289:5:0" runs only this fault; failures are printed in this form.
  std::string only = {};
};

struct FaultCounts {
  std::uint64_t injected = 0;
  std::uint64_t refused = 0;   ///< histories that ended with an error
  std::uint64_t failures = 0;  ///< each printed in a line that says how to repeat it
};

/// Runs a scenario once for each of its operations, reads included, with a failure of this
/// operation: EIO or one of four other errors (fault_kinds.h), once or from then on; reads also
/// return half of the bytes, or none. The history must end with an error, which is never
/// kCorruption after a failed operation, or have the undisturbed result. In both cases the store
/// can be opened afterwards, holds what was acknowledged, and accepts further writes
/// (crash_check.h).
FaultCounts RunFaults(const Scenario& scenario, const History& history, const FaultPlan& plan);

}  // namespace rhizome::testing
