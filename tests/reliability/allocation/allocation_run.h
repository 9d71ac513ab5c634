#pragma once

#include <cstdint>
#include <string>

#include "reliability/harness/history.h"

namespace rhizome::testing {

struct AllocationPlan {
  /// The number of the history's allocations that fail, evenly spaced; `seed` draws the first.
  std::uint64_t points = 1;
  std::uint64_t stride = 0;  ///< if there is one: at every so many-th allocation instead
  std::uint64_t seed = 1;

  /// "updates:289:0" fails only this one, as a failure prints it.
  std::string only = {};
};

struct AllocationCounts {
  std::uint64_t asked = 0;     ///< allocations of an undisturbed run
  std::uint64_t injected = 0;  ///< runs in which one failed, or all from one on
  std::uint64_t refused = 0;   ///< that ended with an error
  std::uint64_t failures = 0;  ///< each printed in a line, with what repeats it
};

/// Runs a scenario repeatedly while an allocation of the library fails in the thread that calls it.
/// The history must end with an error or std::bad_alloc, or do what it does undisturbed. No lock
/// may be left held, and the store must hold what was done and accept further writes
/// (crash_check.h).
AllocationCounts RunAllocations(const Scenario& scenario, const History& history,
                                const AllocationPlan& plan);

}  // namespace rhizome::testing
