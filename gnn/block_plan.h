#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Rows that one thread computes as a unit. Which rows form a tile never depends on settings, so
/// that results do not either; every block and chunk is a multiple of it.
inline constexpr std::uint64_t kTileRows = 128;

constexpr std::uint64_t RoundUpToTiles(std::uint64_t rows) {
  return (rows + kTileRows - 1) / kTileRows * kTileRows;
}

/// Targets [begin, end) of one layer, computed together; they lie in one chunk of the output.
struct Block {
  Row begin = 0;
  Row end = 0;
  std::uint64_t output_chunk = 0;
  std::uint64_t rows() const { return static_cast<std::uint64_t>(end - begin); }
};

/// What a block reads: for each target its neighbours' rows, ascending, and the chunks of the
/// source array that hold them or the targets themselves.
struct BlockLists {
  std::vector<std::uint32_t> offsets;        ///< [targets + 1]
  std::vector<Row> neighbors;                ///< rows; ascending within a list
  std::vector<std::uint64_t> source_chunks;  ///< ascending, distinct
};

/// Cuts the rows [0, row_count) into blocks of `block_rows` (rounded up to tiles), chunk by chunk
/// of the output; chunks for which done[chunk] is set are left out.
std::vector<Block> MakeBlocks(std::uint64_t row_count, std::uint64_t chunk_rows,
                              std::uint64_t block_rows, const std::vector<bool>& done);

struct BlockPlannerOptions {
  std::int64_t fanout = kAllNeighbors;
  bool no_edges = false;
  std::uint64_t seed = 1;
  std::uint32_t layer = 0;  ///< each layer draws its own neighbours
  std::uint32_t threads = 1;
  std::uint64_t source_chunk_rows = 1;
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< nullptr: the graph, in memory
};

/// Says what each block reads. A vertex's neighbours are all of them, or drawn once: the same
/// whichever block it lies in and however often it is asked for. Threads: one at a time.
/// Ownership: `graph` must outlive it.
class BlockPlanner {
 public:
  /// Errors: those of Sampler::Create.
  static Result<BlockPlanner> Create(const Graph& graph, const BlockPlannerOptions& options);

  Result<BlockLists> Plan(const Block& block) const;

 private:
  BlockPlanner(const Graph& graph, const BlockPlannerOptions& options)
      : graph_(&graph), options_(options) {}
  Status FillNeighbors(const Block& block, BlockLists& lists) const;

  const Graph* graph_;
  BlockPlannerOptions options_;
  std::unique_ptr<Sampler> sampler_;  // none without edges
};

}  // namespace rhizome
