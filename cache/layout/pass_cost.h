#pragma once

#include <cstdint>
#include <vector>

#include "cache/layout/pass_layout.h"
#include "cache/layout/pass_lists.h"
#include "rhizome/policy.h"

namespace rhizome {
inline namespace internal {

/// How a worker divides its pass: targets into blocks and rows into chunks, each of at least 1 row.
struct PassShape {
  std::uint64_t block_rows = 1024;
  std::uint64_t chunk_rows = 1024;
};

/// Returns the number of chunks that hold `count` rows.
inline std::uint64_t ChunksOf(std::uint64_t count, std::uint64_t chunk_rows) {
  return (count + chunk_rows - 1) / chunk_rows;
}

/// Returns the chunks that each block of a pass reads: one step per block, with its distinct chunks
/// in ascending order. Keys are numbers of the chunks that hold the worker's rows in the order of
/// `layout`.
/// Memory: one key per chunk request. Time O(edges).
Trace ChunkTrace(const PassLists& lists, const PassLayout& layout, const PassShape& shape);

/// Splits a trace of blocks into one chunk per step, which matches a pass that reads a block's
/// chunks in ascending order. In contrast, a policy judges all keys of one step by the pool's
/// contents at the start of the step, so a block that is a single step has its cached chunks served
/// first.
Trace InArrivalOrder(const Trace& blocks);

/// Counts chunk reads, prefill included, with a cache of `frames` chunks over keys in [0, chunks).
/// Errors: any error of MakePolicy or Replay.
Result<std::uint64_t> CountReads(const Trace& steps, std::uint64_t chunks, PolicyKind policy,
                                 std::uint64_t frames);

/// A candidate layout and its cost for a worker.
struct LayoutCost {
  LayoutRule rule;
  std::uint64_t requests = 0;  ///< (block, distinct chunk) pairs
  std::uint64_t reads = 0;     ///< requests that miss the cache; equals requests without a cache
};

struct ChooseOptions {
  PassShape shape;
  std::vector<LayoutRule> candidates = CandidateLayouts();
  /// size of the memory cache; 0: candidates are compared by requests
  std::uint64_t cache_chunks = 0;
  /// policy that judges a block's chunks one by one, in ascending order
  PolicyKind cache = PolicyKind::kBelady;
  std::uint64_t seed = 1;  ///< for random orders
};

/// Costs of all candidates, and the candidate with the fewest reads (the first among equals). If
/// the natural order is among the candidates, the choice never costs more than it does.
struct LayoutChoice {
  std::vector<LayoutCost> costs;  ///< by candidate
  std::size_t chosen = 0;         ///< index into costs
  std::uint64_t chunks = 0;       ///< number of chunks that the worker's rows fill
  std::uint64_t blocks = 0;
};
Result<LayoutChoice> ChooseLayout(const PassLists& lists, const ChooseOptions& options);

}  // namespace internal
}  // namespace rhizome
