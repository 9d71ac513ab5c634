#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reliability/harness/history.h"
#include "rhizome/status.h"

namespace rhizome::testing {

/// A small closed store with all features (typed and weighted edges, names as ids, arrays in both
/// layouts with versions, a delta), and the same store some writes earlier.
struct SmallStore {
  FakeImage now;
  FakeImage earlier;
  std::string description;

  /// The same store two writes later, after its writer was killed. These writes are only in
  /// RocksDB's log.
  FakeImage open;
  std::string open_description;
};
/// The size of the store. With new vertices, all rows must still fit into one chunk (128 rows).
struct SmallSize {
  std::uint64_t vertices = 14;
  std::uint64_t edges = 30;
  std::uint64_t dim = 3;  ///< of the arrays that are added
};
Result<SmallStore> MakeSmallStore(const SmallSize& size = {});

/// Returns a small closed store with arrays of one vertex type: "look" in row layout, and "tint" in
/// compressed chunks. Both leave chunks out, and have rows in the delta.
Result<FakeImage> MakeBoundStore();

struct DamageCounts {
  std::uint64_t cases = 0;
  std::uint64_t by_reading = 0;  ///< found when the bytes were read
  std::uint64_t by_verify = 0;   ///< found only by verify: bytes that readers do not read
  std::uint64_t harmless = 0;    ///< same answers as before, and verify finds no damage
  std::uint64_t unread = 0;      ///< of files that no reader, writer or verify opens
  std::uint64_t silent = 0;      ///< a wrong answer without an error, each printed in a line
  std::uint64_t unnamed = 0;     ///< of injuries: found, but no message names the file; printed
};

struct FlipPlan {
  /// One in this many bits is flipped.
  std::uint64_t stride = 1;

  /// Bits of a generation's files are flipped under an open store and read through it. One in this
  /// many of the detected ones is also tested by opening the store again.
  std::uint64_t afresh_stride = 1000;

  /// In files that no one opens, according to a trace of the sound store, one in this many bits is
  /// flipped nevertheless; the others count as unread.
  std::uint64_t unread_stride = 1000;
  std::uint64_t seed = 1;

  /// Only files with this text in their paths.
  std::string only = {};
  bool stop_at_first = false;

  /// Prints the outcomes for each file.
  bool print = false;
};

/// Flips bits of RocksDB's log and MANIFEST of a store that was not closed.
DamageCounts FlipOpenLogs(const SmallStore& store, std::uint64_t stride, std::uint64_t seed,
                          bool stop_at_first = false);

/// Flips bits of the files of the store, one at a time.
DamageCounts FlipBits(const SmallStore& store, const FlipPlan& plan);

/// A change of a store's files that must be detected.
struct Injury {
  std::string name;
  std::vector<std::string> files;  ///< the changed files; messages must name one of them
  std::function<void(FakeFileSystem&)> inflict;
};

/// Returns injuries. Every file is cut at every `stride`-th length, removed, swapped with and
/// replaced by every other file, replaced by its earlier contents, copied beside itself, and
/// extended; pieces of a file are swapped.
std::vector<Injury> ListInjuries(const SmallStore& store, std::uint64_t stride);

/// Applies each injury and counts the outcomes. RHIZOME_INJURY selects injuries by a part of their
/// names.
DamageCounts Injure(const SmallStore& store, const std::vector<Injury>& injuries,
                    bool stop_at_first = false);

}  // namespace rhizome::testing
