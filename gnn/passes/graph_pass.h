#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/blocks/chunk_reader.h"
#include "cache/layout/pass_lists.h"
#include "gnn/ops/torch.h"
#include "gnn/passes/aggregator.h"
#include "gnn/passes/chunk_mover.h"
#include "gnn/passes/scratch_array.h"
#include "gnn/passes/tile_sums.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// The features as passes read them. Threads: const. Ownership: borrows `array`.
struct FeatureSource {
  const ChunkArray& array;
  FeatureDecoder decoder;
  std::shared_ptr<const DeltaRows> delta;
  ChunkReaderOptions reader;
  std::uint64_t rows = 0;                  ///< number of vertices of the graph
  std::atomic<std::uint64_t>& bytes_read;  ///< each pass adds its bytes at its end
};

/// An input of a pass: a scratch array, or the features.
struct PassInput {
  ScratchArray* array = nullptr;  ///< null: the features
  bool operator==(const PassInput&) const = default;
};

/// An aggregation over neighbour lists that a pass performs before it computes.
struct PassGather {
  PassInput source;
  std::size_t width = 0;  ///< number of columns that are aggregated, the first of the source
  bool forward = true;    ///< over the lists of the forward pass; else over the reverse lists
  AggregationKind by = AggregationKind::kSum;
  GatherHeads heads = {};  ///< for attention

  std::size_t columns() const { return GatheredColumns(by, width, heads); }
};

/// A tile of a pass: rows [first, first + count) of all arrays, at most kDenseRows rows.
struct PassTile {
  std::size_t group = 0;  ///< group of TileSums that the tile adds to
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::vector<torch::Tensor> inputs;    ///< [count, columns], as GraphPass::inputs
  std::vector<torch::Tensor> gathered;  ///< [count, PassGather::columns], as GraphPass::gathers
  std::vector<torch::Tensor> outputs;   ///< filled in by the body, as GraphPass::outputs
};

/// One pass over all rows in order. It reads arrays row by row, may aggregate rows over lists,
/// computes tile by tile, and writes arrays and sums.
struct GraphPass {
  std::string name;  ///< for progress and reports
  std::vector<PassInput> inputs = {};
  std::vector<PassGather> gathers = {};
  std::vector<ScratchArray*> outputs = {};
  std::size_t sums = 0;
  std::uint64_t summed_bytes = 0;  ///< bytes of all sums together
  bool scores = false;             ///< it passes scores to a sink, which keeps them in memory

  /// Computes a tile, on any of the compute threads.
  std::function<void(PassTile& tile, TileSums& sums)> body = {};
};

/// Returns the index of an input of a pass. Adds the input if the pass does not have it.
std::size_t InputOf(GraphPass& pass, const PassInput& input);

/// Sizes of chunks and stages in the passes of a job. They do not change results.
struct PassSizes {
  std::uint64_t chunk_rows = 0;   ///< of all scratch arrays, a multiple of kDenseRows
  std::uint64_t stage_bytes = 0;  ///< for the rows of a window; there are two stages
};

/// The lists and factors of one direction: forward, as in the layers, or reverse.
/// Ownership: borrows the factors.
struct GatherSide {
  PassDrawOptions draw = {};
  std::vector<std::uint32_t> degrees;
  GatherFactors factors;
};

/// The blocks of all rows, by direction (true: forward) and by maximum number of rows of a block.
/// They are cached, because making them visits every row.
using MadeBlocks = std::map<std::pair<bool, std::uint64_t>, std::vector<Block>>;

/// The context that all passes of a job share.
/// Threads: one at a time.
/// Ownership: borrows all.
struct PassContext {
  const GraphSnapshot& graph;
  const FeatureSource& features;
  const GatherSide& forward;
  const GatherSide& backward;
  PassSizes sizes;
  std::shared_ptr<MadeBlocks> made = std::make_shared<MadeBlocks>();

  std::uint64_t rows() const { return graph.vertex_count(); }
  const GatherSide& SideOf(const PassGather& gather) const {
    return gather.forward ? forward : backward;
  }
  std::uint64_t ColumnsOf(const PassInput& input) const;
  std::uint64_t ChunkRowsOf(const PassInput& input) const;

  /// Returns the division of an aggregation into blocks and windows. `block_bytes`: memory for the
  /// sums and lists of a block.
  GatherShape ShapeOf(const PassGather& gather, std::uint64_t block_bytes) const;
};

/// A point of a pass at which all rows before chunk `chunk` are computed.
struct PassPoint {
  std::uint64_t chunk = 0;
  TileSums sums{0};  ///< sums of the tiles before it
};

/// How a pass is run.
struct PassCut {
  std::uint64_t block_bytes = 0;  ///< memory for a block of each aggregation
  PassPoint* from = nullptr;  ///< where an earlier process stopped; null: start at the first chunk

  /// Called at each point before the end of the pass, after all chunks before it are handed to the
  /// mover. May be empty.
  std::function<Status(const PassPoint& point)> reached = {};
};

/// Runs the next pass of a mover's plan. `phase`: shown as progress. Errors: errors of reading and
/// writing arrays and of reading lists; kInterrupted.
Result<TileSums> RunPass(const GraphPass& pass, const PassContext& ground, const PassCut& cut,
                         ChunkMover& mover, const std::string& phase, const JobControl& control);

/// Returns the bytes of the chunks of scratch arrays that a pass reads and writes at once, without
/// those that stay in memory.
std::uint64_t ChunksOfPass(const GraphPass& pass);

/// Returns the memory that a pass needs, without chunks that stay in memory. `threads`: number of
/// compute threads.
std::uint64_t BytesOfPass(const GraphPass& pass, const PassContext& ground,
                          std::uint64_t block_bytes, std::uint32_t threads);

}  // namespace internal
}  // namespace rhizome
