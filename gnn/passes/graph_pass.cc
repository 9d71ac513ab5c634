#include "gnn/passes/graph_pass.h"

#include <algorithm>
#include <utility>

#include "cache/blocks/row_stream.h"
#include "cache/job/compute_threads.h"
#include "gnn/ops/dense.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

// RunPass:
//   1. Open begins the pass of the mover, and opens the inputs and aggregations at the first chunk
//      that is not computed yet.
//   2. RunChunk, for each chunk of rows: aggregates, reads the inputs, computes tile by tile on the
//      compute threads (RunTiles), and hands the outputs to the mover.
//   3. Finishes the pass of the mover, and returns the sums.

namespace rhizome {
inline namespace internal {
namespace {

/// Returns a tensor over rows that it does not own.
torch::Tensor Borrowed(const float* rows, std::int64_t count, std::uint64_t columns) {
  return torch::from_blob(const_cast<float*>(rows), {count, static_cast<std::int64_t>(columns)});
}

/// The run of one pass, chunk by chunk of its output arrays.
class PassRun {
 public:
  PassRun(const GraphPass& pass, const PassContext& ground, const PassCut& cut, ChunkMover& mover)
      : pass_(pass),
        ground_(ground),
        cut_(cut),
        mover_(mover),
        chunk_rows_(ground.sizes.chunk_rows),
        at_{.chunk = 0, .sums = TileSums(pass.sums)} {
    if (cut.from != nullptr) at_ = std::move(*cut.from);
    if (cut.from != nullptr && RHIZOME_MUTANT("a resumed pass repeats a chunk")) --at_.chunk;
  }

  /// Stops the mover first, so that threads that wait for it end before the objects that they use.
  ~PassRun() { mover_.Cancel(); }

  Result<TileSums> Run(const std::string& phase, const JobControl& control) {
    const Status status = RunChunks(phase, control);
    // An error of the mover is the cause of other errors, so it is returned first.
    RHIZOME_RETURN_IF_ERROR(mover_.status());
    RHIZOME_RETURN_IF_ERROR(status);
    RHIZOME_RETURN_IF_ERROR(mover_.Finish());
    for (ChunkReader* const reader : readers_)
      ground_.features.bytes_read += reader->Finish().bytes_read;
    return std::move(at_.sums);
  }

 private:
  struct PassAggregation {
    std::optional<std::size_t> own;  // index of the input with the targets' own rows
    std::unique_ptr<ChunkFeed> feed;
    std::unique_ptr<PassAggregator> gatherer;  // reads feed
    std::vector<float> rows;                   // [chunk rows, columns]
  };

  Status RunChunks(const std::string& phase, const JobControl& control) {
    RHIZOME_RETURN_IF_ERROR(Open(control));
    const std::uint64_t rows = ground_.rows();
    while (at_.chunk * chunk_rows_ < rows) {
      const std::uint64_t first = at_.chunk * chunk_rows_;
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = phase, .done = first, .total = rows, .detail = pass_.name}));
      RHIZOME_RETURN_IF_ERROR(RunChunk(first, std::min(chunk_rows_, rows - first)));
      ++at_.chunk;
      if (cut_.reached && at_.chunk * chunk_rows_ < rows)
        RHIZOME_RETURN_IF_ERROR(cut_.reached(at_));
    }
    return Status::Ok();
  }

  Status Open(const JobControl& control) {
    const std::uint64_t first = at_.chunk * chunk_rows_;
    ChunkMover::From from{.chunk = at_.chunk, .blocks = {}};
    std::vector<GatherShape> shapes;
    for (const PassInput& input : pass_.inputs)
      if (input.array != nullptr) from.blocks.push_back(ChunkMover::From::kInOrder);
    for (const PassGather& gather : pass_.gathers) {
      GatherShape& shape = shapes.emplace_back(ground_.ShapeOf(gather, cut_.block_bytes));
      const auto block =
          std::find_if(shape.blocks.begin(), shape.blocks.end(),
                       [&](const Block& b) { return static_cast<std::uint64_t>(b.end) > first; });
      if (gather.source.array != nullptr) from.blocks.push_back(block - shape.blocks.begin());
      shape.blocks.erase(shape.blocks.begin(), block);
    }
    RHIZOME_RETURN_IF_ERROR(mover_.Begin(from.blocks.size(), from));
    for (const PassInput& input : pass_.inputs) {
      streams_.push_back(std::make_unique<RowStream>(
          OpenFeed(input, control), RowStream::Rows{.first = first,
                                                    .end = ground_.rows(),
                                                    .dim = ground_.ColumnsOf(input),
                                                    .chunk_rows = ground_.ChunkRowsOf(input)}));
    }
    for (std::size_t g = 0; g < pass_.gathers.size(); ++g)
      RHIZOME_RETURN_IF_ERROR(OpenGather(pass_.gathers[g], shapes[g], control));
    return Status::Ok();
  }

  Status OpenGather(const PassGather& gather, const GatherShape& shape, const JobControl& control) {
    PassAggregation& made = gatherings_.emplace_back();
    const GatherSide& side = ground_.SideOf(gather);
    if (!side.factors.own.empty()) {
      const auto found = std::find(pass_.inputs.begin(), pass_.inputs.end(), gather.source);
      RHIZOME_CHECK(found != pass_.inputs.end());  // own rows are also an input
      made.own = static_cast<std::size_t>(found - pass_.inputs.begin());
    }
    made.feed = OpenFeed(gather.source, control);
    RHIZOME_ASSIGN_OR_RETURN(
        made.gatherer, PassAggregator::Create(ground_.graph, shape, side.factors, *made.feed));
    made.rows.resize(std::min(chunk_rows_, ground_.rows()) * gather.columns());
    return Status::Ok();
  }

  /// Opens the next read of the pass: first the inputs, which are read in order, then the
  /// aggregations.
  std::unique_ptr<ChunkFeed> OpenFeed(const PassInput& input, const JobControl& control) {
    if (input.array != nullptr) return mover_.FeedOf(next_read_++, *input.array);
    const FeatureSource& features = ground_.features;
    auto reader = std::make_unique<ChunkReader>(features.array, features.decoder, features.reader,
                                                control, features.delta);
    readers_.push_back(reader.get());
    return reader;
  }

  Status RunChunk(std::uint64_t first, std::uint64_t count) {
    // In the plan, the aggregation of a block precedes in-order reads at the same row.
    for (PassAggregation& gathering : gatherings_)
      RHIZOME_RETURN_IF_ERROR(gathering.gatherer->Prepare(first));
    std::vector<const float*> inputs;
    for (const auto& stream : streams_) {
      RHIZOME_ASSIGN_OR_RETURN(const float* const rows, stream->Take(first, count));
      inputs.push_back(rows);
    }
    for (PassAggregation& gathering : gatherings_) {
      const std::optional<std::size_t> own = gathering.own;
      RHIZOME_RETURN_IF_ERROR(gathering.gatherer->Take(first, count, own ? inputs[*own] : nullptr,
                                                       own ? streams_[*own]->dim() : 0,
                                                       gathering.rows.data()));
    }
    std::vector<std::shared_ptr<float[]>> outputs;
    for (const ScratchArray* const array : pass_.outputs) {
      RHIZOME_ASSIGN_OR_RETURN(std::shared_ptr<float[]> rows, array->Take(at_.chunk));
      outputs.push_back(std::move(rows));
    }
    RunTiles(first, count, inputs, outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      RHIZOME_RETURN_IF_ERROR(mover_.Made(*pass_.outputs[i], at_.chunk, std::move(outputs[i])));
    return Status::Ok();
  }

  void RunTiles(std::uint64_t first, std::uint64_t count, const std::vector<const float*>& inputs,
                const std::vector<std::shared_ptr<float[]>>& outputs) {
    const auto tiles = static_cast<std::size_t>(DenseTiles(static_cast<std::int64_t>(count)));
    const std::size_t first_tile = first / static_cast<std::uint64_t>(kDenseRows);
    // One thread computes all tiles of a group, in order.
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
        pass_.body(made, at_.sums);
      }
    });
  }

  PassTile TileAt(std::int64_t before, std::int64_t count, const std::vector<const float*>& inputs,
                  const std::vector<std::shared_ptr<float[]>>& outputs) {
    PassTile tile;
    tile.count = count;
    const auto at = static_cast<std::uint64_t>(before);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::uint64_t dim = streams_[i]->dim();
      tile.inputs.push_back(Borrowed(inputs[i] + at * dim, count, dim));
    }
    for (std::size_t g = 0; g < gatherings_.size(); ++g) {
      const std::size_t columns = pass_.gathers[g].columns();
      tile.gathered.push_back(Borrowed(gatherings_[g].rows.data() + at * columns, count, columns));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::uint64_t dim = pass_.outputs[i]->shape().dim;
      tile.outputs.push_back(Borrowed(outputs[i].get() + at * dim, count, dim));
    }
    return tile;
  }

  const GraphPass& pass_;
  const PassContext& ground_;
  const PassCut& cut_;
  ChunkMover& mover_;
  const std::uint64_t chunk_rows_;
  PassPoint at_;
  std::size_t next_read_ = 0;
  std::vector<ChunkReader*> readers_;  // of features; owned by streams_ and gatherings_
  std::vector<std::unique_ptr<RowStream>> streams_;
  std::deque<PassAggregation> gatherings_;
};

}  // namespace

std::size_t InputOf(GraphPass& pass, const PassInput& input) {
  const auto found = std::find(pass.inputs.begin(), pass.inputs.end(), input);
  if (found != pass.inputs.end()) return static_cast<std::size_t>(found - pass.inputs.begin());
  pass.inputs.push_back(input);
  return pass.inputs.size() - 1;
}

Result<TileSums> RunPass(const GraphPass& pass, const PassContext& ground, const PassCut& cut,
                         ChunkMover& mover, const std::string& phase, const JobControl& control) {
  return PassRun(pass, ground, cut, mover).Run(phase, control);
}

}  // namespace internal
}  // namespace rhizome
