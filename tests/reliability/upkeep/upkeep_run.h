#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reliability/harness/rocks_disk.h"

namespace rhizome::testing {

/// An operation on a whole store: verify, back up, restore, repair.
struct Upkeep {
  std::string name;
  FakeImage before;

  /// Runs the operation. `wrong` receives what is wrong with its report, if it made one.
  std::function<Status(StoreDisk& disk, std::string& wrong)> run;

  /// Checks the disk afterwards, when its faults are over. `ended` is the result of `run`; a crash
  /// counts as an error. Returns what is wrong, or nothing if all is well.
  std::function<std::optional<std::string>(StoreDisk& disk, const Status& ended)> check;

  /// Nothing is damaged: a failing operation must not count as damage (kCorruption), and a read
  /// that returns half of the bytes is no failure. A read that returns none may be damage.
  bool sound = false;
};

/// Returns the operations, on a store with arrays, versions, names and a delta. Fails the running
/// test if such a store cannot be made.
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

/// Runs the operation repeatedly while one of its disk operations, reads included, fails with EIO
/// or another error that is drawn (fault_kinds.h), once or from then on, or a read returns less
/// than there is; and checks the result.
UpkeepCounts RunUpkeepFaults(const Upkeep& upkeep, const UpkeepPlan& plan);

/// Cuts the power before disk operations that change something, and checks the result.
UpkeepCounts RunUpkeepCrashes(const Upkeep& upkeep, const UpkeepPlan& plan);

}  // namespace rhizome::testing
