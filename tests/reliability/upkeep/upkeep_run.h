#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reliability/harness/rocks_disk.h"

namespace rhizome::testing {

/// What people do with a whole store, and not in it: verify, back up, restore, repair.
struct Upkeep {
  std::string name;
  FakeImage before;

  /// Does it. `wrong`: what is wrong with what it said, if it said anything.
  std::function<Status(StoreDisk& disk, std::string& wrong)> run;

  /// Looks at the disk afterwards, whose faults are over: `ended` is how `run` did, a crash counts
  /// as an error. Returns what is wrong; nothing if all is well.
  std::function<std::optional<std::string>(StoreDisk& disk, const Status& ended)> check;

  /// Nothing is damaged: an operation that fails must not count as damage (kCorruption), and one
  /// that brings half of the bytes is no failure. A read that brings none may be damage.
  bool sound = false;
};

/// On a store with arrays, versions, names and a delta. Fails the running test where one cannot be
/// made.
std::vector<Upkeep> Upkeeps();

struct UpkeepPlan {
  std::uint64_t stride = 1;  ///< one in so many operations, the first of them drawn by `seed`
  std::uint64_t seed = 1;
  std::string only = {};  ///< "repair of FORMAT:17:5:0", as a failure prints it, or how it begins
};

struct UpkeepCounts {
  std::uint64_t cases = 0;
  std::uint64_t refused = 0;   ///< of the faults: those that ended with an error
  std::uint64_t failures = 0;  ///< each printed in a line, with what repeats it
};

/// Does it again and again while one operation fails, reads too, with EIO or another error that is
/// drawn (fault_kinds.h), once or from then on, or a read brings less than there is; and checks.
UpkeepCounts RunUpkeepFaults(const Upkeep& upkeep, const UpkeepPlan& plan);

/// Lets the power go before operations that change something; and checks.
UpkeepCounts RunUpkeepCrashes(const Upkeep& upkeep, const UpkeepPlan& plan);

}  // namespace rhizome::testing
