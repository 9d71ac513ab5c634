#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/pass_layout.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/cache/policy.h"

namespace rhizome::inline internal {

/// How a worker divides its pass: targets into blocks and rows into chunks, each of at least 1 row.
struct PassShape {
  std::uint64_t block_rows = 1024;
  std::uint64_t chunk_rows = 1024;
};

/// Returns the number of chunks that hold `count` rows.
inline std::uint64_t ChunksOf(std::uint64_t count, std::uint64_t chunk_rows) {
  return (count + chunk_rows - 1) / chunk_rows;
}

/// Returns the chunks that each block of a pass reads: one step a block, with its distinct chunks
/// ascending. The keys number the chunks that the worker's rows fill when placed by `layout`.
/// Memory: one key a chunk request. Time O(edges).
Trace ChunkTrace(const PassLists& lists, const PassLayout& layout, const PassShape& shape);

/// A trace of blocks, one chunk a step: as a pass reads that takes a block's chunks in ascending
/// order. Of a step a policy judges all keys by what the pool holds when the step begins, so that a
/// block that is one step has its cached chunks served first.
Trace InArrivalOrder(const Trace& blocks);

/// Chunk reads below a cache of `frames` chunks, prefill included, over keys in [0, chunks).
/// Errors: those of MakePolicy and of Replay.
Result<std::uint64_t> CountReads(const Trace& steps, std::uint64_t chunks, PolicyKind policy,
                                 std::uint64_t frames);

/// A candidate layout and what it costs a worker.
struct LayoutCost {
  LayoutRule rule;
  std::uint64_t requests = 0;  ///< (block, distinct chunk) pairs
  std::uint64_t reads = 0;     ///< requests that miss the cache; = requests without a cache
};

struct ChooseOptions {
  PassShape shape;
  std::vector<LayoutRule> candidates = CandidateLayouts();
  /// size of the memory cache; 0: candidates are compared by requests
  std::uint64_t cache_chunks = 0;
  /// judges a block's chunks one by one, in ascending order
  PolicyKind cache = PolicyKind::kBelady;
  std::uint64_t seed = 1;  ///< for random orders
};

/// The costs of all candidates, and the one with fewest reads, the first of equals. With the
/// natural order among the candidates the choice never costs more than that.
struct LayoutChoice {
  std::vector<LayoutCost> costs;  ///< by candidate
  std::size_t chosen = 0;         ///< index into costs
  std::uint64_t chunks = 0;       ///< chunks that the worker's rows fill
  std::uint64_t blocks = 0;
};
Result<LayoutChoice> ChooseLayout(const PassLists& lists, const ChooseOptions& options);

}  // namespace rhizome::inline internal
