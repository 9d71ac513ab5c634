#include "rhizome/gnn/graph_pass.h"

#include <algorithm>

#include "rhizome/cache/compute_threads.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {
namespace {

/// Memory of a block's lists for each edge and each target, of kListedBlocks blocks.
constexpr std::uint64_t kBytesOfListedEdge = 8;
constexpr std::uint64_t kBytesOfListedTarget = 48;
constexpr std::uint64_t kListedBlocks = BlockStager::kBlocks;

/// Maximum ratio of a block's edges to the average for as many rows.
constexpr double kBlockEdgeRatio = 1.5;

constexpr std::uint64_t kBytesOfListedRow = 20;

/// Memory of a tile with its gradients, in copies of the rows that the tile reads and writes.
constexpr std::uint64_t kTileCopies = 10;

/// Memory of the sums, lists, windows and finished rows of a gathering.
std::uint64_t BytesOfGather(const PassGround& ground, const PassGather& gather) {
  const GatherShape shape = ground.ShapeOf(gather);
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
         (rows + ground.sizes.chunk_rows) * shape.width * sizeof(float) + kListedBlocks * lists;
}

std::unique_ptr<ChunkFeed> OpenFeed(const PassInput& input, const PassGround& ground,
                                    const JobControl& control) {
  if (input.array != nullptr)
    return std::make_unique<ScratchReader>(*input.array, ground.sizes.ahead);
  const FeatureSource& features = ground.features;
  return std::make_unique<ChunkReader>(features.array, features.decoder, features.reader, control,
                                       features.delta);
}

/// A tensor over rows that someone else owns.
torch::Tensor Borrowed(const float* rows, std::int64_t count, std::uint64_t columns) {
  return torch::from_blob(const_cast<float*>(rows), {count, static_cast<std::int64_t>(columns)});
}

/// The run of one pass: chunk by chunk of the arrays that it writes.
class PassRun {
 public:
  PassRun(const GraphPass& pass, const PassGround& ground) : pass_(pass), ground_(ground) {}

  Result<TileSums> Run(const std::string& phase, const JobControl& control) {
    TileSums sums(pass_.sums);
    RHIZOME_RETURN_IF_ERROR(Open(control));
    const std::uint64_t rows = ground_.rows();
    for (std::uint64_t first = 0; first < rows; first += ground_.sizes.chunk_rows) {
      const std::uint64_t count = std::min(ground_.sizes.chunk_rows, rows - first);
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = phase, .done = first, .total = rows, .detail = pass_.name}));
      RHIZOME_RETURN_IF_ERROR(RunChunk(first, count, sums));
    }
    RHIZOME_RETURN_IF_ERROR(writer_.Finish());
    return sums;
  }

 private:
  Status Open(const JobControl& control) {
    for (const PassInput& input : pass_.inputs) {
      streams_.push_back(std::make_unique<RowStream>(OpenFeed(input, ground_, control),
                                                     ground_.rows(), ground_.ColumnsOf(input),
                                                     ground_.ChunkRowsOf(input)));
    }
    if (!pass_.gather) return Status::Ok();
    const GatherSide& side = ground_.SideOf(*pass_.gather);
    if (!side.factors.own.empty()) {
      const auto found = std::find(pass_.inputs.begin(), pass_.inputs.end(), pass_.gather->source);
      RHIZOME_CHECK(found != pass_.inputs.end());  // own rows are read in their order
      own_ = static_cast<std::size_t>(found - pass_.inputs.begin());
    }
    feed_ = OpenFeed(pass_.gather->source, ground_, control);
    RHIZOME_ASSIGN_OR_RETURN(
        gatherer_,
        Gatherer::Create(ground_.graph, ground_.ShapeOf(*pass_.gather), side.factors, *feed_));
    gathered_.resize(std::min(ground_.sizes.chunk_rows, ground_.rows()) * pass_.gather->width);
    return Status::Ok();
  }

  Status RunChunk(std::uint64_t first, std::uint64_t count, TileSums& sums) {
    std::vector<const float*> inputs;
    for (const auto& stream : streams_) {
      RHIZOME_ASSIGN_OR_RETURN(const float* const rows, stream->Take(first, count));
      inputs.push_back(rows);
    }
    if (gatherer_ != nullptr) {
      RHIZOME_RETURN_IF_ERROR(gatherer_->Take(first, count, own_ ? inputs[*own_] : nullptr,
                                              own_ ? streams_[*own_]->dim() : 0, gathered_.data()));
    }
    std::vector<std::shared_ptr<float[]>> outputs;
    for (const ScratchArray* const array : pass_.outputs) {
      RHIZOME_ASSIGN_OR_RETURN(std::shared_ptr<float[]> rows, array->Take());
      outputs.push_back(std::move(rows));
    }
    const auto tiles = static_cast<std::size_t>(DenseTiles(static_cast<std::int64_t>(count)));
    const std::size_t first_tile = first / static_cast<std::uint64_t>(kDenseRows);
    // A group's tiles are taken in order, by whichever thread takes the group.
    ComputeFor(std::min(tiles, TileSums::kGroups), [&](std::size_t i) {
      for (std::size_t tile = i; tile < tiles; tile += TileSums::kGroups) {
        const auto before = static_cast<std::int64_t>(tile) * kDenseRows;
        PassTile made =
            TileAt(before, std::min(kDenseRows, static_cast<std::int64_t>(count) - before), inputs,
                   outputs);
        made.group = RHIZOME_MUTANT("gradients are grouped by chunks")
                         ? i
                         : (first_tile + tile) % TileSums::kGroups;
        made.first = static_cast<std::int64_t>(first) + before;
        pass_.body(made, sums);
      }
    });
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      RHIZOME_RETURN_IF_ERROR(writer_.Write(*pass_.outputs[i], first / ground_.sizes.chunk_rows,
                                            std::move(outputs[i])));
    }
    return Status::Ok();
  }

  PassTile TileAt(std::int64_t before, std::int64_t count, const std::vector<const float*>& inputs,
                  const std::vector<std::shared_ptr<float[]>>& outputs) const {
    PassTile tile;
    tile.count = count;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::uint64_t dim = streams_[i]->dim();
      tile.inputs.push_back(
          Borrowed(inputs[i] + static_cast<std::uint64_t>(before) * dim, count, dim));
    }
    if (gatherer_ != nullptr) {
      const std::size_t width = pass_.gather->width;
      tile.gathered =
          Borrowed(gathered_.data() + static_cast<std::size_t>(before) * width, count, width);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::uint64_t dim = pass_.outputs[i]->shape().dim;
      tile.outputs.push_back(
          Borrowed(outputs[i].get() + static_cast<std::uint64_t>(before) * dim, count, dim));
    }
    return tile;
  }

  const GraphPass& pass_;
  const PassGround& ground_;
  ScratchWriter writer_;
  std::vector<std::unique_ptr<RowStream>> streams_;
  std::optional<std::size_t> own_;  // the stream of the gathered array's own rows
  std::unique_ptr<ChunkFeed> feed_;
  std::unique_ptr<Gatherer> gatherer_;  // reads feed_
  std::vector<float> gathered_;         // [chunk rows, width]
};

}  // namespace

std::uint64_t PassGround::ColumnsOf(const PassInput& input) const {
  return input.array != nullptr ? input.array->shape().dim : features.array.entry().dim;
}

std::uint64_t PassGround::ChunkRowsOf(const PassInput& input) const {
  return input.array != nullptr ? input.array->shape().chunk_rows
                                : features.array.entry().chunk_rows;
}

GatherShape PassGround::ShapeOf(const PassGather& gather) const {
  const GatherSide& side = SideOf(gather);
  GatherShape shape;
  shape.dim = ColumnsOf(gather.source);
  shape.width = gather.width;
  shape.planner = {.draw = side.draw,
                   .source_chunk_rows = ChunkRowsOf(gather.source),
                   .stage_rows = std::clamp<std::uint64_t>(
                       sizes.stage_bytes / (shape.dim * sizeof(float)), 1, rows()),
                   .own = {.before = false, .after = false},
                   .degrees = side.degrees};
  const std::uint64_t edges = MostEdgesOf(side.draw, graph);
  const double per_row = static_cast<double>(edges) / static_cast<double>(rows());
  const std::uint64_t row_bytes =
      shape.width * sizeof(float) +
      kListedBlocks * (kBytesOfListedTarget +
                       static_cast<std::uint64_t>(kBlockEdgeRatio * per_row *
                                                  static_cast<double>(kBytesOfListedEdge)));
  const std::uint64_t block_rows =
      std::clamp(sizes.block_bytes / row_bytes, kTileRows, RoundUpToTiles(rows()));
  const auto most =
      static_cast<std::uint64_t>(kBlockEdgeRatio * per_row * static_cast<double>(block_rows));
  const BlockEdges bound{.most = std::max(kSampledEdges, most), .of = [&](std::uint64_t row) {
                           return EdgesOfRow(shape.planner, static_cast<Row>(row));
                         }};
  shape.blocks = MakeBlocks(rows(), rows(), block_rows, {false}, bound);
  return shape;
}

Result<TileSums> RunPass(const GraphPass& pass, const PassGround& ground, const std::string& phase,
                         const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(TileSums sums, PassRun(pass, ground).Run(phase, control));
  for (ScratchArray* const array : pass.dropped) array->Drop();
  return sums;
}

Result<PassCount> CountPass(const GraphPass& pass, const PassGround& ground, bool exact,
                            const JobControl& control) {
  PassCount count;
  const auto add = [](const ScratchArray& array, std::uint64_t chunk, auto& bytes) {
    if (!array.IsResident(chunk)) bytes[array.shape().name] += array.shape().BytesIn(chunk);
  };
  const auto add_all = [&](const ScratchArray& array, auto& bytes) {
    for (std::uint64_t chunk = 0; chunk < array.shape().chunks(); ++chunk) add(array, chunk, bytes);
  };
  for (const PassInput& input : pass.inputs) {
    if (input.array != nullptr) add_all(*input.array, count.read);
  }
  for (const ScratchArray* const array : pass.outputs) add_all(*array, count.written);
  if (!pass.gather) return count;
  const GatherShape shape = ground.ShapeOf(*pass.gather);
  count.blocks = shape.blocks.size();
  const ScratchArray* const source = pass.gather->source.array;
  if (source == nullptr) return count;
  if (!exact) {
    for (std::uint64_t block = 0; block < count.blocks; ++block) add_all(*source, count.read);
    return count;
  }
  RHIZOME_ASSIGN_OR_RETURN(const BlockReads reads,
                           PlanReads(ground.graph, shape.planner, shape.blocks, control));
  for (const CacheKey key : reads.trace.keys)
    add(*source, static_cast<std::uint64_t>(key), count.read);
  return count;
}

std::uint64_t BytesOfPass(const GraphPass& pass, const PassGround& ground, std::uint32_t threads) {
  const PassSizes& sizes = ground.sizes;
  const ArrayEntry& features = ground.features.array.entry();
  std::uint64_t bytes = pass.summed_bytes * (TileSums::kGroups + 1);
  std::uint64_t columns = 0;  // of a tile
  const auto add_feed = [&](const PassInput& input) {
    bytes += input.array != nullptr ? ScratchReader::Bytes(input.array->shape(), sizes.ahead)
                                    : ChunkReader::WorkingBytes(features, ground.features.reader);
  };
  for (const PassInput& input : pass.inputs) {
    add_feed(input);
    columns += ground.ColumnsOf(input);
    if (input.array == nullptr) bytes += sizes.chunk_rows * features.dim * sizeof(float);
  }
  for (const ScratchArray* const array : pass.outputs) {
    bytes += (ScratchWriter::kWaiting + 2) * array->shape().LargestBytes();
    columns += array->shape().dim;
  }
  if (pass.gather) {
    add_feed(pass.gather->source);
    columns += pass.gather->width;
    bytes += BytesOfGather(ground, *pass.gather);
  }
  return bytes +
         threads * static_cast<std::uint64_t>(kDenseRows) * columns * sizeof(float) * kTileCopies;
}

}  // namespace rhizome::inline internal
