#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cache/full_graph/counted_sequence.h"

namespace rhizome {
inline namespace internal {

/// The decision for one pass: a number of blocks, and how much of each array is in memory while the
/// pass runs, in parts that are prefixes of its chunks.
struct PassDecision {
  std::uint32_t choice = 0;            ///< index into CountedPass::choices
  std::vector<std::uint8_t> resident;  ///< [arrays], in parts
};

struct PassSearchOptions {
  std::uint64_t capacity_bytes = 0;
  std::uint32_t parts = 8;  ///< parts per array; at most 15
  /// maximum per pass; if exceeded, only the best states are kept
  std::size_t max_states = 200'000;
  /// choices of one search; if exceeded, no longer all are tried
  std::uint64_t max_tried = 2'000'000;
  /// Ignore plans of this many bytes or more, because a better one is known.
  std::optional<std::uint64_t> below_bytes = {};
};

struct PassSearchResult {
  /// Empty if no plan is below `below_bytes` (or, without `optimal`, none was found).
  std::vector<PassDecision> decisions;
  std::uint64_t bytes = 0;
  bool optimal = false;           ///< nothing was cut: no plan moves fewer bytes
  std::uint64_t states = 0;       ///< maximum over passes
  std::uint64_t bound_bytes = 0;  ///< lower bound for any plan, for any division into parts
};

/// State of an array between two passes.
struct PartState {
  std::uint8_t resident = 0;  ///< parts in memory
  std::uint8_t dirty = 0;     ///< number of leading parts that exist only in memory
  friend bool operator==(const PartState&, const PartState&) = default;
};

/// Finds the plan that moves the fewest bytes between the tiers, over states (pass, parts of each
/// array in memory, dirty parts). The rules of a pass are:
/// - parts that must not be resident leave before the pass; their dirty chunks are written;
/// - an array that is read grows by parts that the pass requests completely: these are kept as
///   they arrive and are read once. Other chunks are read as often as the pass requests them;
/// - an array that is written keeps its first chunks, dirty; the others are written as they are
///   completed;
/// - a chunk that is read in order for the last time leaves at once, so that written data can use
///   its memory;
/// - an array that no later pass reads is dropped without a write.
/// Memory: resident parts and the sums of the pass must fit at each of `parts` stages of the
/// in-order accesses.
///
/// States whose cost plus RemainingBytesBound exceeds a known plan are pruned, which is exact. The
/// known plan comes from a narrow beam search. Only maximal choices are tried: a part that is kept
/// longer than needed can leave later at the same cost. There is one exception that is tried in
/// full: an array whose next pass reads it in order, but not for the last time, may benefit from
/// fewer resident parts, because it grows again only as others leave. If a pass has more states or
/// choices than allowed, the best are kept, and the result is not marked optimal.
///
/// Source: ROC (MLSys 2020), section 5, Algorithm 1, whose states are sets of whole tensors. Here
/// the order of passes is fixed, arrays are divided, and writes have a cost.
PassSearchResult SearchPasses(const CountedSequence& sequence, const PassSearchOptions& options);

}  // namespace internal
}  // namespace rhizome
