#include "cache/layout/pass_cost.h"

#include <algorithm>

#include "cache/policy/basic_policies.h"
#include "rhizome/policy.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {

Trace ChunkTrace(const PassLists& lists, const PassLayout& layout, const PassShape& shape) {
  Trace trace;
  // Number of the last block that read each chunk, counted from 1.
  std::vector<std::uint64_t> seen_in(ChunksOf(lists.rows.size(), shape.chunk_rows), 0);
  std::vector<CacheKey> step;
  const std::uint64_t targets = layout.order.size();
  for (std::uint64_t begin = 0; begin < targets; begin += shape.block_rows) {
    step.clear();
    const std::uint64_t block = trace.steps() + 1;
    const auto read = [&](LocalRow row) {
      const std::uint64_t chunk = layout.position[row] / shape.chunk_rows;
      if (seen_in[chunk] == block) return;
      seen_in[chunk] = block;
      step.push_back(static_cast<CacheKey>(chunk));
    };
    for (std::uint64_t i = begin; i < std::min(begin + shape.block_rows, targets); ++i) {
      const std::uint32_t target = layout.order[i];
      read(lists.targets[target]);
      for (const LocalRow row : lists.ReadsOf(target)) read(row);
    }
    std::sort(step.begin(), step.end());
    trace.AddStep(step);
  }
  return trace;
}

Trace InArrivalOrder(const Trace& blocks) {
  Trace trace;
  for (const CacheKey& key : blocks.keys) trace.AddStep(std::span(&key, 1));
  return trace;
}

Result<std::uint64_t> CountReads(const Trace& steps, std::uint64_t chunks, PolicyKind policy,
                                 std::uint64_t frames) {
  // Every chunk is a separate read, so the minimum cost is the minimum number of reads.
  if (policy == PolicyKind::kCost) policy = PolicyKind::kBelady;
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<Policy> made,
      MakePolicy({.kind = policy,
                  .frame_count = static_cast<std::uint32_t>(std::min(frames, chunks)),
                  .key_count = chunks,
                  .unit_bytes = 1,
                  .cost = {}},
                 steps));
  RHIZOME_ASSIGN_OR_RETURN(const ReplayCounts counts, Replay(*made, steps));
  return counts.reads();
}

Result<LayoutChoice> ChooseLayout(const PassLists& lists, const ChooseOptions& options) try {
  if (options.candidates.empty() || options.shape.block_rows == 0 || options.shape.chunk_rows == 0)
    return Fail(
        Status::InvalidArgument("choosing a layout needs at least one candidate, and blocks and "
                                "chunks of at least one row"));
  LayoutChoice choice;
  choice.chunks = ChunksOf(lists.rows.size(), options.shape.chunk_rows);
  choice.blocks = ChunksOf(lists.targets.size(), options.shape.block_rows);
  for (const LayoutRule& rule : options.candidates) {
    const Trace trace = ChunkTrace(
        lists, LayOut(lists, rule, options.shape.block_rows, options.seed), options.shape);
    std::uint64_t reads = trace.keys.size();
    if (options.cache_chunks > 0) {
      RHIZOME_ASSIGN_OR_RETURN(reads, CountReads(InArrivalOrder(trace), choice.chunks,
                                                 options.cache, options.cache_chunks));
    }
    choice.costs.push_back({.rule = rule, .requests = trace.keys.size(), .reads = reads});
    if (choice.costs.back().reads < choice.costs[choice.chosen].reads) {
      choice.chosen = choice.costs.size() - 1;
    }
  }
  return choice;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace internal
}  // namespace rhizome
