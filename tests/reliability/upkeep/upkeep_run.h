#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reliability/harness/rocks_disk.h"
#include "rhizome/status.h"

namespace rhizome::testing {

/// An operation on a whole store: verify, back up, restore, repair.
struct Upkeep {
  std::string name;
  FakeImage before;

  /// Runs the operation. `wrong` receives what is wrong with its report, if there is one.
  std::function<Status(StoreDisk& disk, std::string& wrong)> run;

  /// Checks the disk afterwards, without faults. `ended` is the result of `run`; a crash counts as
  /// an error. Returns what is wrong, or nullopt.
  std::function<std::optional<std::string>(StoreDisk& disk, const Status& ended)> check;

  /// The store is not damaged: a failing operation must not count as damage (kCorruption), and a
  /// read that returns half of the bytes is no failure. A read that returns no bytes may count as
  /// damage.
  bool sound = false;
};

/// Returns the operations, on a store with arrays, versions, names and a delta. Fails the running
/// test if such a store cannot be created.
std::vector<Upkeep> Upkeeps();

struct UpkeepPlan {
  std::uint64_t stride = 1;  ///< one in this many operations; `seed` selects the first
  std::uint64_t seed = 1;
  std::string only = {};  ///< "repair of FORMAT:17:5:0", as printed by failures, or a prefix
};

struct UpkeepCounts {
  std::uint64_t cases = 0;
  std::uint64_t refused = 0;   ///< faulty runs that ended with an error
  std::uint64_t failures = 0;  ///< each printed in a line that says how to repeat it
};

/// Runs the operation once for each of its disk operations, reads included, with a failure of it:
/// EIO or another error (fault_kinds.h), once or from then on, or a read that returns too few
/// bytes. Checks the result.
UpkeepCounts RunUpkeepFaults(const Upkeep& upkeep, const UpkeepPlan& plan);

/// Cuts the power before disk operations that change the disk, and checks the result.
UpkeepCounts RunUpkeepCrashes(const Upkeep& upkeep, const UpkeepPlan& plan);

}  // namespace rhizome::testing
