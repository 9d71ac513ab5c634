#include "rhizome/cache/pass_cost.h"

#include <algorithm>

#include "rhizome/cache/policies.h"

namespace rhizome {
namespace {

/// `target_at(i)` is the i-th target computed; `chunk_of(local row)` lies in [0, chunks).
template <typename TargetAt, typename ChunkOf>
Trace TraceBlocks(const PassLists& lists, std::span<const std::uint64_t> block_ends,
                  std::uint64_t chunks, TargetAt target_at, ChunkOf chunk_of) {
  Trace trace;
  // the last block that read the chunk, counted from 1
  std::vector<std::uint64_t> seen_in(chunks, 0);
  std::vector<CacheKey> step;
  std::uint64_t i = 0;
  for (std::size_t block = 0; block < block_ends.size(); ++block) {
    step.clear();
    const auto read = [&](LocalRow row) {
      const std::uint64_t chunk = chunk_of(row);
      if (seen_in[chunk] == block + 1) return;
      seen_in[chunk] = block + 1;
      step.push_back(static_cast<CacheKey>(chunk));
    };
    for (; i < block_ends[block]; ++i) {
      const std::uint64_t target = target_at(i);
      read(lists.targets[target]);
      for (const LocalRow row : lists.ReadsOf(target)) read(row);
    }
    std::sort(step.begin(), step.end());
    trace.AddStep(step);
  }
  return trace;
}

}  // namespace

Trace ChunkTrace(const PassLists& lists, const PassLayout& layout, const PassShape& shape) {
  std::vector<std::uint64_t> block_ends;
  for (std::uint64_t begin = 0; begin < layout.order.size(); begin += shape.block_rows) {
    block_ends.push_back(std::min<std::uint64_t>(begin + shape.block_rows, layout.order.size()));
  }
  return TraceBlocks(
      lists, block_ends, ChunksOf(lists.rows.size(), shape.chunk_rows),
      [&](std::uint64_t i) -> std::uint64_t { return layout.order[i]; },
      [&](LocalRow row) { return layout.position[row] / shape.chunk_rows; });
}

Trace StoredChunkTrace(const PassLists& lists, std::span<const std::uint64_t> block_ends,
                       std::uint64_t chunk_rows) {
  const std::uint64_t rows =
      lists.rows.empty() ? 0 : static_cast<std::uint64_t>(lists.rows.back()) + 1;
  return TraceBlocks(
      lists, block_ends, ChunksOf(rows, chunk_rows), [](std::uint64_t i) { return i; },
      [&](LocalRow row) { return static_cast<std::uint64_t>(lists.rows[row]) / chunk_rows; });
}

Trace InArrivalOrder(const Trace& blocks) {
  Trace trace;
  for (const CacheKey& key : blocks.keys) trace.AddStep(std::span(&key, 1));
  return trace;
}

std::uint64_t CountReads(const Trace& steps, std::uint64_t chunks, PolicyKind policy,
                         std::uint64_t frames) {
  // Every chunk is a read of its own, so the least cost is the least number of reads.
  if (policy == PolicyKind::kCost) policy = PolicyKind::kBelady;
  const auto made = MakePolicy({.kind = policy,
                                .frame_count = static_cast<std::uint32_t>(std::min(frames, chunks)),
                                .key_count = chunks,
                                .unit_bytes = 1,
                                .cost = {}},
                               steps);
  return Replay(*made, steps).reads();
}

LayoutChoice ChooseLayout(const PassLists& lists, const ChooseOptions& options) {
  LayoutChoice choice;
  choice.chunks = ChunksOf(lists.rows.size(), options.shape.chunk_rows);
  choice.blocks = ChunksOf(lists.targets.size(), options.shape.block_rows);
  for (const LayoutRule& rule : options.candidates) {
    const Trace trace = ChunkTrace(
        lists, LayOut(lists, rule, options.shape.block_rows, options.seed), options.shape);
    choice.costs.push_back({.rule = rule,
                            .requests = trace.keys.size(),
                            .reads = options.cache_chunks == 0
                                         ? trace.keys.size()
                                         : CountReads(InArrivalOrder(trace), choice.chunks,
                                                      options.cache, options.cache_chunks)});
    if (choice.costs.back().reads < choice.costs[choice.chosen].reads) {
      choice.chosen = choice.costs.size() - 1;
    }
  }
  return choice;
}

}  // namespace rhizome
