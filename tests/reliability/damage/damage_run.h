#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reliability/harness/history.h"

namespace rhizome::testing {

/// A small closed store with everything in it: typed and weighted edges, names for ids, arrays in
/// both layouts with versions, a delta. And the same store some writes earlier.
struct SmallStore {
  FakeImage now;
  FakeImage earlier;
  std::string description;

  /// The same store two writes later, its writer killed: the writes are in RocksDB's log only.
  FakeImage open;
  std::string open_description;
};
/// How much is in it. The numbers of new vertices must leave all rows in one chunk (128).
struct SmallSize {
  std::uint64_t vertices = 14;
  std::uint64_t edges = 30;
  std::uint64_t dim = 3;  ///< of the arrays that are added
};
Result<SmallStore> MakeSmallStore(const SmallSize& size = {});

struct DamageCounts {
  std::uint64_t cases = 0;
  std::uint64_t by_reading = 0;  ///< found when the bytes were read
  std::uint64_t by_verify = 0;   ///< found by verify only: bytes that we do not read
  std::uint64_t harmless = 0;    ///< every answer as before, and verify finds nothing to say
  std::uint64_t unread = 0;      ///< of files that no reader, writer or verify ever opens
  std::uint64_t silent = 0;      ///< a wrong answer without an error, each printed in a line
  std::uint64_t unnamed = 0;     ///< of injuries: found, but no message says where; printed
};

struct FlipPlan {
  /// One in so many bits is flipped.
  std::uint64_t stride = 1;

  /// Bits of the files of a generation are flipped under a store that is open, and read through it.
  /// One in so many of those that were found is looked for by opening the store afresh, too.
  std::uint64_t afresh_stride = 1000;

  /// Files that nobody opens, as the disk's record of the sound store shows: one in so many of
  /// their bits is flipped all the same, the others count as unread.
  std::uint64_t unread_stride = 1000;
  std::uint64_t seed = 1;

  /// Only files whose paths have this in them.
  std::string only = {};
  bool stop_at_first = false;

  /// Prints what became of the bits of each file.
  bool print = false;
};

/// Flips bits of RocksDB's log and MANIFEST of a store that was not closed.
DamageCounts FlipOpenLogs(const SmallStore& store, std::uint64_t stride, std::uint64_t seed,
                          bool stop_at_first = false);

/// Flips bits of the files of the store, one at a time.
DamageCounts FlipBits(const SmallStore& store, const FlipPlan& plan);

/// Something that happens to the files of a store.
struct Injury {
  std::string name;
  std::vector<std::string> files;  ///< what it happens to: messages must name one of them
  std::function<void(FakeFileSystem&)> inflict;
};

/// Every file cut at every `stride`-th length, removed, swapped with every other one and replaced
/// by it, replaced by what it was earlier, copied beside itself, and made longer; pieces of a file
/// swapped with each other.
std::vector<Injury> ListInjuries(const SmallStore& store, std::uint64_t stride);

/// RHIZOME_INJURY: only injuries whose names have this in them.
DamageCounts Injure(const SmallStore& store, const std::vector<Injury>& injuries,
                    bool stop_at_first = false);

}  // namespace rhizome::testing
