#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/counted_sequence.h"

namespace rhizome::inline internal {

/// A time for which bytes would have to stay in memory to save as many: over the gaps between
/// passes [first, last], where gap g is that between passes g and g + 1.
struct KeepInterval {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::uint64_t bytes = 0;
};

/// Returns the most bytes of `intervals` (sorted by `first`) that can stay where the intervals that
/// are kept may hold capacity[g] bytes in gap g, and an interval may stay in part. Where there are
/// too many, the ones that end last go: the exchange argument of Belady's rule, which over bytes
/// instead of pages is exact.
std::uint64_t MostKept(std::span<const KeepInterval> intervals,
                       std::span<const std::uint64_t> capacity);

/// The state of an array when a pass begins: of its first chunks `resident_bytes` are in memory,
/// and of those the first `dirty_bytes` are nowhere else.
struct HeldArray {
  ArrayId array = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t dirty_bytes = 0;
};

/// Bounds from below what the rest of a sequence moves, whatever is kept, in whatever pieces:
/// - reads: each pass reads each array that it asks for once, unless it is in memory when the pass
///   begins; by Belady's rule, and as if writing were free;
/// - what a pass reads again because it has several blocks: in each block what an earlier block
/// asked
///   for too, but for as much as fits beside the sums; by the number of blocks with the least of
///   it;
/// - writes: once what cannot stay in memory from when it is made until a chunk of it is last asked
///   for.
/// No plan can save more than each of the three at once, so their sum is a bound.
class RestBound {
 public:
  RestBound(const CountedSequence& sequence, std::uint64_t capacity_bytes);

  /// Returns the bound for passes [pass, end). `held` lists what is in memory, each array once.
  std::uint64_t Of(std::size_t pass, std::span<const HeldArray> held) const;

 private:
  void CountRereads(const CountedSequence& sequence, std::uint64_t capacity_bytes);
  void FindIntervals(const CountedSequence& sequence);

  struct Read {
    std::int32_t pass = 0;
    std::uint64_t bytes = 0;      ///< that every choice asks for
    std::uint64_t from_here = 0;  ///< the most of this read and those after it
  };
  /// Calls add(last gap, bytes) for how long the first `bytes` of an array are needed at least,
  /// from the read `next` on.
  template <typename Add>
  void LivesFrom(ArrayId array, std::size_t next, std::uint64_t bytes, Add&& add) const;

  std::vector<std::vector<Read>> reads_;   // [arrays], ascending passes
  std::vector<std::uint64_t> read_total_;  // [passes + 1] of this pass and those after it
  std::vector<std::uint64_t> write_total_;
  std::vector<KeepInterval> read_intervals_;  // by first
  std::vector<KeepInterval> life_intervals_;
  std::vector<std::uint64_t> capacity_;  // [passes] of the gap behind each
};

}  // namespace rhizome::inline internal
