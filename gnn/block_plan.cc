#include "rhizome/gnn/block_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rhizome/cache/pass_lists.h"

namespace rhizome {

std::vector<Block> MakeBlocks(std::uint64_t row_count, std::uint64_t chunk_rows,
                              std::uint64_t block_rows, const std::vector<bool>& done) {
  const std::uint64_t step = RoundUpToTiles(std::max<std::uint64_t>(block_rows, 1));
  std::vector<Block> blocks;
  for (std::uint64_t first = 0; first < row_count; first += chunk_rows) {
    const std::uint64_t chunk = first / chunk_rows;
    if (done[chunk]) continue;
    const std::uint64_t last = std::min(first + chunk_rows, row_count);
    for (std::uint64_t begin = first; begin < last; begin += step) {
      blocks.push_back({.begin = static_cast<Row>(begin),
                        .end = static_cast<Row>(std::min(begin + step, last)),
                        .output_chunk = chunk});
    }
  }
  return blocks;
}

Result<BlockPlanner> BlockPlanner::Create(const Graph& graph, const BlockPlannerOptions& options) {
  BlockPlanner planner(graph, options);
  if (options.no_edges) return planner;
  RHIZOME_ASSIGN_OR_RETURN(
      planner.sampler_,
      Sampler::Create(graph, PassSampling(options.fanout, options.seed, options.threads),
                      options.neighbors));
  return planner;
}

Status BlockPlanner::FillNeighbors(const Block& block, BlockLists& lists) const {
  std::vector<VertexId> targets;
  for (Row row = block.begin; row < block.end; ++row) targets.push_back(graph_->VertexAt(row));
  // The key is the layer, not the block: a vertex draws the same neighbours in a block of any size.
  RHIZOME_ASSIGN_OR_RETURN(const SampledSubgraph subgraph,
                           sampler_->Sample(targets, options_.layer));
  if (subgraph.neighbors.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Status::InvalidArgument(
        fmt::format("{} edges end in the {} rows from row {}; make the blocks smaller",
                    subgraph.neighbors.size(), block.rows(), block.begin));
  }
  lists.neighbors.reserve(subgraph.neighbors.size());
  for (std::size_t t = 0; t < targets.size(); ++t) {
    for (std::uint64_t e = subgraph.offsets[t]; e < subgraph.offsets[t + 1]; ++e) {
      lists.neighbors.push_back(subgraph.rows[static_cast<std::size_t>(subgraph.neighbors[e])]);
    }
    lists.offsets[t + 1] = static_cast<std::uint32_t>(lists.neighbors.size());
    std::sort(lists.neighbors.begin() + lists.offsets[t], lists.neighbors.end());
  }
  return Status::Ok();
}

Result<BlockLists> BlockPlanner::Plan(const Block& block) const {
  BlockLists lists;
  lists.offsets.assign(block.rows() + 1, 0);
  if (sampler_ != nullptr) RHIZOME_RETURN_IF_ERROR(FillNeighbors(block, lists));
  std::vector<std::uint64_t>& chunks = lists.source_chunks;
  const std::uint64_t chunk_rows = options_.source_chunk_rows;
  const auto chunk_of = [&](Row row) { return static_cast<std::uint64_t>(row) / chunk_rows; };
  for (std::uint64_t c = chunk_of(block.begin); c <= chunk_of(block.end - 1); ++c) {
    chunks.push_back(c);
  }
  for (const Row row : lists.neighbors) {
    if (chunks.back() != chunk_of(row)) chunks.push_back(chunk_of(row));
  }
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return lists;
}

}  // namespace rhizome
