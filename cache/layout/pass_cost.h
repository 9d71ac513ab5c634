#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/pass_layout.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/cache/policy.h"
#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// How a worker cuts its pass: targets into blocks, rows into chunks. Both at least 1.
struct PassShape {
  std::uint64_t block_rows = 1024;
  std::uint64_t chunk_rows = 1024;
};

/// The chunks of `count` rows.
inline std::uint64_t ChunksOf(std::uint64_t count, std::uint64_t chunk_rows) {
  return (count + chunk_rows - 1) / chunk_rows;
}

/// What each block of a pass reads: a step a block, its distinct chunks ascending. The keys are the
/// chunks that the worker's rows fill as `layout` places them. As many keys as there are chunk
/// requests. O(edges).
Trace ChunkTrace(const PassLists& lists, const PassLayout& layout, const PassShape& shape);

/// A trace of blocks, one chunk a step: as a pass reads that takes a block's chunks in ascending
/// order. Of a step a policy judges all keys by what the pool holds when the step begins, so that a
/// block that is one step has its cached chunks served first.
Trace InArrivalOrder(const Trace& blocks);

/// Chunk reads below a cache of `frames` chunks, prefill included, over keys in [0, chunks).
/// Errors: those of MakePolicy and of Replay.
Result<std::uint64_t> CountReads(const Trace& steps, std::uint64_t chunks, PolicyKind policy,
                                 std::uint64_t frames);

/// One candidate and what it costs a worker.
struct LayoutCost {
  LayoutRule rule;
  std::uint64_t requests = 0;  ///< (block, distinct chunk) pairs
  std::uint64_t reads = 0;     ///< of them below the cache; = requests without one
};

struct ChooseOptions {
  PassShape shape;
  std::vector<LayoutRule> candidates = CandidateLayouts();
  std::uint64_t cache_chunks = 0;          ///< of the memory cache; 0: by requests alone
  PolicyKind cache = PolicyKind::kBelady;  ///< over chunks in ascending order within a block
  std::uint64_t seed = 1;                  ///< of random orders
};

/// Counts every candidate, and chooses the one with fewest reads: of equal ones the first named.
/// So with the natural order among the candidates nothing that is chosen costs more than it.
/// Errors: kInvalidArgument, no candidate, or blocks or chunks of no rows; those of CountReads.
struct LayoutChoice {
  std::vector<LayoutCost> costs;  ///< by candidate
  std::size_t chosen = 0;         ///< index into costs
  std::uint64_t chunks = 0;       ///< that the worker's rows fill
  std::uint64_t blocks = 0;
};
Result<LayoutChoice> ChooseLayout(const PassLists& lists, const ChooseOptions& options);

}  // namespace internal
}  // namespace rhizome
