#include <algorithm>

#include "gnn/ops/dense.h"
#include "gnn/passes/graph_pass.h"

// Division of passes into blocks and windows, and the memory that passes need.

namespace rhizome {
inline namespace internal {
namespace {

/// Memory per edge and per target in the lists of a block. kListedBlocks blocks have lists at once.
constexpr std::uint64_t kBytesOfListedEdge = 8;
constexpr std::uint64_t kBytesOfListedTarget = 48;
constexpr std::uint64_t kListedBlocks = BlockStager::kBlocks;

/// Maximum ratio of a block's edges to the average number of edges of as many rows.
constexpr double kBlockEdgeRatio = 1.5;

/// Memory per distinct row that the lists of a block contain.
constexpr std::uint64_t kBytesOfListedRow = 20;

/// Memory of a tile with its gradients, as a multiple of the rows that the tile reads and writes.
constexpr std::uint64_t kTileCopies = 10;

/// Returns the memory of the sums, lists, windows and finished rows of an aggregation.
std::uint64_t BytesOfGather(const PassContext& ground, const PassGather& gather,
                            std::uint64_t block_bytes) {
  const GatherShape shape = ground.ShapeOf(gather, block_bytes);
  std::uint64_t rows = 0;
  for (const Block& block : shape.blocks) rows = std::max(rows, block.rows());
  const std::uint64_t all = MostEdgesOf(shape.planner.draw, ground.graph);
  const double share = static_cast<double>(rows) / static_cast<double>(ground.rows());
  const std::uint64_t edges =
      std::min(all, std::max(kSampledEdges, static_cast<std::uint64_t>(kBlockEdgeRatio * share *
                                                                       static_cast<double>(all))));
  const std::uint64_t lists = edges * kBytesOfListedEdge + rows * kBytesOfListedTarget +
                              std::min(edges + rows, ground.rows()) * kBytesOfListedRow;
  return BlockStager::kStages * shape.planner.stage_rows * shape.dim * sizeof(float) +
         (rows * shape.state_columns() + ground.sizes.chunk_rows * shape.columns()) *
             sizeof(float) +
         kListedBlocks * lists;
}

}  // namespace

std::uint64_t PassContext::ColumnsOf(const PassInput& input) const {
  return input.array != nullptr ? input.array->shape().dim : features.array.entry().dim;
}

std::uint64_t PassContext::ChunkRowsOf(const PassInput& input) const {
  return input.array != nullptr ? input.array->shape().chunk_rows
                                : features.array.entry().chunk_rows;
}

GatherShape PassContext::ShapeOf(const PassGather& gather, std::uint64_t block_bytes) const {
  const GatherSide& side = SideOf(gather);
  GatherShape shape;
  shape.dim = ColumnsOf(gather.source);
  shape.width = gather.width;
  shape.by = gather.by;
  shape.heads = gather.heads;
  shape.planner = {.draw = side.draw,
                   .source_chunk_rows = ChunkRowsOf(gather.source),
                   .stage_rows = std::clamp<std::uint64_t>(
                       sizes.stage_bytes / (shape.dim * sizeof(float)), 1, rows()),
                   .own = {.before = Attends(gather.by), .after = false},
                   .degrees = side.degrees};
  const std::uint64_t edges = MostEdgesOf(side.draw, graph);
  const double per_row = static_cast<double>(edges) / static_cast<double>(rows());
  const std::uint64_t row_bytes =
      shape.state_columns() * sizeof(float) +
      kListedBlocks * (kBytesOfListedTarget +
                       static_cast<std::uint64_t>(kBlockEdgeRatio * per_row *
                                                  static_cast<double>(kBytesOfListedEdge)));
  const std::uint64_t block_rows =
      std::clamp(block_bytes / row_bytes, kTileRows, RoundUpToTiles(rows()));
  std::vector<Block>& blocks = (*made)[{gather.forward, block_rows}];
  if (!blocks.empty()) {
    shape.blocks = blocks;
    return shape;
  }
  const auto most =
      static_cast<std::uint64_t>(kBlockEdgeRatio * per_row * static_cast<double>(block_rows));
  const BlockEdges bound{.most = std::max(kSampledEdges, most), .of = [&](std::uint64_t row) {
                           return EdgesOfRow(shape.planner, static_cast<Row>(row));
                         }};
  blocks = MakeBlocks(rows(), rows(), block_rows, {false}, bound);
  shape.blocks = blocks;
  return shape;
}

std::uint64_t ChunksOfPass(const GraphPass& pass) {
  std::uint64_t bytes = 0;
  const auto add_feed = [&](const PassInput& input) {
    if (input.array != nullptr) bytes += ChunkMover::FeedBytes(input.array->shape());
  };
  for (const PassInput& input : pass.inputs) add_feed(input);
  for (const PassGather& gather : pass.gathers) add_feed(gather.source);
  for (const ScratchArray* const array : pass.outputs) bytes += array->shape().LargestBytes();
  return bytes;
}

std::uint64_t BytesOfPass(const GraphPass& pass, const PassContext& ground,
                          std::uint64_t block_bytes, std::uint32_t threads) {
  const ArrayEntry& features = ground.features.array.entry();
  const std::uint64_t reader = ChunkReader::WorkingBytes(features, ground.features.reader);
  const std::uint64_t chunk_rows = ground.sizes.chunk_rows;
  std::uint64_t bytes = pass.summed_bytes * (TileSums::kGroups + 1) + ChunksOfPass(pass);
  std::uint64_t columns = 0;  // of a tile, over all arrays
  for (const PassInput& input : pass.inputs) {
    columns += ground.ColumnsOf(input);
    if (input.array == nullptr) bytes += reader + chunk_rows * features.dim * sizeof(float);
  }
  for (const ScratchArray* const array : pass.outputs) columns += array->shape().dim;
  for (const PassGather& gather : pass.gathers) {
    columns += gather.columns();
    if (gather.source.array == nullptr) bytes += reader;
    bytes += BytesOfGather(ground, gather, block_bytes);
  }
  return bytes +
         threads * static_cast<std::uint64_t>(kDenseRows) * columns * sizeof(float) * kTileCopies;
}

}  // namespace internal
}  // namespace rhizome
