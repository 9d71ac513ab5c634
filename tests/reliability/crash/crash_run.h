#pragma once

#include <cstdint>
#include <string>

#include "reliability/harness/history.h"

namespace rhizome::testing {

/// How thoroughly RunCrashes checks.
struct CrashPlan {
  std::uint64_t seed = 1;

  /// Draws of each random mode at each operation.
  int draws = 1;

  /// The recovery of one in so many crashes is crashed too, before each of its operations.
  int recoveries_one_in = 20;

  /// One in so many crashed stores is verified before it is opened for writing.
  int verify_one_in = 4;

  bool stop_at_first = false;

  /// "updates:289:2:77" runs only this crash, "updates:289:2:77:12:3:5" only this crash of its
  /// recovery, as a failure prints it.
  std::string only = {};
};

struct CrashCounts {
  std::uint64_t operations = 0;  ///< that were crashed before
  std::uint64_t states = 0;      ///< distinct trees that crashes left
  std::uint64_t recoveries = 0;  ///< distinct trees that crashes of recoveries left
  std::uint64_t failures = 0;    ///< each printed in a line, with what repeats it
};

/// Crashes a history before each of its operations, in all modes, and checks the result
/// (crash_check.h), on all processors.
CrashCounts RunCrashes(const History& history, const CrashPlan& plan);

}  // namespace rhizome::testing
