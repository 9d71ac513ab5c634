#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rhizome/cache/counted_sequence.h"

namespace rhizome::inline internal {

/// The decision for one pass: a number of blocks, and how much of each array is in memory while
/// it runs, in parts of its chunks from the first.
struct PassDecision {
  std::uint32_t choice = 0;            ///< index into CountedPass::choices
  std::vector<std::uint8_t> resident;  ///< [arrays], in parts
};

struct PassSearchOptions {
  std::uint64_t capacity_bytes = 0;
  std::uint32_t parts = 8;               ///< of an array; at most 15
  std::size_t most_states = 200'000;     ///< of one pass; more are cut to the best ones
  std::uint64_t most_tried = 2'000'000;  ///< choices of one search; then no longer all are tried
  /// Plans of so many bytes or more are of no interest: another one is known.
  std::optional<std::uint64_t> below_bytes = {};
};

struct PassSearchResult {
  /// Empty: no plan is below `below_bytes` (or, without `optimal`, none was found).
  std::vector<PassDecision> decisions;
  std::uint64_t bytes = 0;
  bool optimal = false;           ///< nothing was cut: no plan moves fewer bytes
  std::uint64_t states = 0;       ///< the most of one pass
  std::uint64_t bound_bytes = 0;  ///< no plan moves fewer, in whatever parts
};

/// The state of an array between two passes.
struct PartState {
  std::uint8_t resident = 0;  ///< parts in memory
  std::uint8_t dirty = 0;     ///< the first so many of them are nowhere else
  friend bool operator==(const PartState&, const PartState&) = default;
};

/// Finds the plan that moves the fewest bytes between the tiers, over states (pass, parts of each
/// array in memory, dirty parts). In a pass:
/// - parts that are not to be resident leave before it; what of them is dirty is written;
/// - an array that is read grows, by parts of which the pass asks for all chunks: they stay as they
///   come, and are read once; those beyond are read as often as the pass asks for them;
/// - an array that is written keeps its first chunks, dirty; the others are written as they come;
/// - a chunk that goes by in order for the last time leaves at once, so that what is written can
///   take its place;
/// - an array that no later pass reads leaves for nothing.
/// Memory: parts that are resident and the sums of the pass, at each of `parts` stages of what goes
/// by in order.
///
/// States whose cost and RestBound exceed a plan that is known are left out, which is exact. That
/// plan comes from a narrow beam. Only choices to which nothing can be added are tried: a part that
/// is kept longer than needed can leave later at the same cost. One exception is tried in full: an
/// array that the next pass to use it reads in order, and not for the last time, may be better off
/// with less, as it grows only while others leave. Where a pass has more states or choices than
/// allowed, the best are kept, and the result is not called optimal.
///
/// Source: ROC (MLSys 2020), section 5, Algorithm 1, whose states are sets of whole tensors; here
/// the order of passes is fixed, arrays are divided, and writes are charged.
PassSearchResult SearchPasses(const CountedSequence& sequence, const PassSearchOptions& options);

}  // namespace rhizome::inline internal
