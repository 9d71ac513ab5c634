#pragma once

#include <cstdint>
#include <string>

#include "reliability/harness/history.h"

namespace rhizome::testing {

struct AllocationPlan {
  /// Number of allocations of the history that fail, evenly spaced; `seed` selects the first.
  std::uint64_t points = 1;
  std::uint64_t stride = 0;  ///< if not 0: every `stride`-th allocation fails instead
  std::uint64_t seed = 1;

  /// "updates:289:0" runs only this case; failures are printed in this form.
  std::string only = {};
};

struct AllocationCounts {
  std::uint64_t asked = 0;     ///< allocations of an undisturbed run
  std::uint64_t injected = 0;  ///< runs in which one allocation failed, or all from one on
  std::uint64_t refused = 0;   ///< runs that ended with an error
  std::uint64_t failures = 0;  ///< each printed in a line that says how to repeat it
};

/// Runs a scenario repeatedly; each time an allocation of the library fails in the thread that
/// calls it. The history must end with an error or std::bad_alloc, or have the undisturbed result.
/// No lock may remain held, and the store must hold what was done and accept further writes
/// (crash_check.h).
AllocationCounts RunAllocations(const Scenario& scenario, const History& history,
                                const AllocationPlan& plan);

}  // namespace rhizome::testing
