#pragma once

#include <cstdint>
#include <string>

#include "reliability/harness/history.h"

namespace rhizome::testing {

struct AllocationPlan {
  /// At so many of the history's allocations, evenly, the first of them drawn by `seed`.
  std::uint64_t points = 1;
  std::uint64_t stride = 0;  ///< if there is one: at every so many-th allocation instead
  std::uint64_t seed = 1;

  /// "updates:289:0": only this one, as a failure prints it.
  std::string only = {};
};

struct AllocationCounts {
  std::uint64_t asked = 0;     ///< allocations of an undisturbed run
  std::uint64_t injected = 0;  ///< runs in which one failed, or all from one on
  std::uint64_t refused = 0;   ///< that ended with an error
  std::uint64_t failures = 0;  ///< each printed in a line, with what repeats it
};

/// Runs a scenario again and again, in which an allocation of the library fails in the thread that
/// calls it. The history, whose steps are public functions, must end with kOutOfMemory, or do what
/// it did undisturbed; no lock is left held, and the store holds what was done, and goes on
/// (crash_check.h).
AllocationCounts RunAllocations(const Scenario& scenario, const History& history,
                                const AllocationPlan& plan);

}  // namespace rhizome::testing
