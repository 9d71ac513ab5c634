#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "reliability/harness/history.h"

namespace rhizome::testing {

/// How thoroughly RunCrashes checks.
struct CrashPlan {
  std::uint64_t seed = 1;

  /// Number of draws of each random mode at each operation.
  int draws = 1;

  /// Simulates at most this many crashes, random ones.
  std::size_t most_crashes = std::numeric_limits<std::size_t>::max();

  /// One in this many crashes is followed by crashes of its recovery, before each of its
  /// operations.
  int recoveries_one_in = 20;

  /// One in this many crashed stores is verified before it is opened for writing.
  int verify_one_in = 4;

  bool stop_at_first = false;

  /// "updates:289:2:77" runs only this crash, "updates:289:2:77:12:3:5" only this crash of its
  /// recovery; failures are printed in this form.
  std::string only = {};
};

struct CrashCounts {
  std::uint64_t operations = 0;  ///< of the history
  std::uint64_t states = 0;      ///< distinct trees that crashes left
  std::uint64_t recoveries = 0;  ///< distinct trees that crashes of recoveries left
  std::uint64_t failures = 0;    ///< each printed in a line that says how to repeat it
};

/// Simulates a crash before each operation of a history, in all modes, and checks the result
/// (crash_check.h), or random ones of these (`CrashPlan::most_crashes`). Uses all CPUs.
CrashCounts RunCrashes(const History& history, const CrashPlan& plan);

}  // namespace rhizome::testing
