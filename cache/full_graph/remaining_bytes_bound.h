#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/full_graph/counted_sequence.h"

namespace rhizome {
inline namespace internal {

/// Bytes that must be kept in memory over the gaps [first, last] to save moving the same number of
/// bytes. Gap g is between passes g and g + 1.
struct KeepInterval {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::uint64_t bytes = 0;
};

/// Returns the maximum number of bytes of `intervals` (sorted by `first`) that can be kept if they
/// may occupy capacity[g] bytes in gap g. An interval may be kept in part. If there are too many,
/// those that end last are dropped: the exchange argument of Belady's rule, which is exact for
/// bytes instead of pages.
std::uint64_t MostKept(std::span<const KeepInterval> intervals,
                       std::span<const std::uint64_t> capacity);

/// State of an array when a pass begins: its first `resident_bytes` are in memory, and the first
/// `dirty_bytes` of these are nowhere else.
struct HeldArray {
  ArrayId array = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t dirty_bytes = 0;
};

/// Lower bound on the bytes that the rest of a sequence moves, for any policy and any division of
/// arrays:
/// - reads: each pass reads the requested bytes of each array once, unless they are in memory when
///   the pass begins. The savings are bounded by Belady's rule, with free writes;
/// - re-reads within a pass of several blocks: in each block, the bytes that an earlier block
///   requested too, minus the bytes that fit in memory next to the sums. The minimum over the block
///   choices counts;
/// - writes: one write of the bytes that cannot be kept in memory from their creation until the
///   last request for a chunk of them.
///
/// No plan can save more than this on any of the three, so their sum is a lower bound.
class RemainingBytesBound {
 public:
  RemainingBytesBound(const CountedSequence& sequence, std::uint64_t capacity_bytes);

  /// Returns the bound for passes [pass, end). `held` lists the arrays in memory, each once.
  std::uint64_t Of(std::size_t pass, std::span<const HeldArray> held) const;

 private:
  void CountRereads(const CountedSequence& sequence, std::uint64_t capacity_bytes);
  void FindIntervals(const CountedSequence& sequence);

  struct Read {
    std::int32_t pass = 0;
    std::uint64_t bytes = 0;      ///< requested by every choice
    std::uint64_t from_here = 0;  ///< maximum of `bytes` over this read and later ones
  };
  /// Calls add(last gap, bytes) for the minimum lifetimes of the first `bytes` of an array,
  /// starting at its read `next`.
  template <typename Add>
  void LivesFrom(ArrayId array, std::size_t next, std::uint64_t bytes, Add&& add) const;

  std::vector<std::vector<Read>> reads_;   // [arrays], ascending passes
  std::vector<std::uint64_t> read_total_;  // [passes + 1] sum over this pass and later ones
  std::vector<std::uint64_t> write_total_;
  std::vector<KeepInterval> read_intervals_;  // sorted by first
  std::vector<KeepInterval> life_intervals_;
  std::vector<std::uint64_t> capacity_;  // [passes] capacity of the gap after each pass
};

}  // namespace internal
}  // namespace rhizome
