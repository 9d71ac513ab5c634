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

#include "rhizome/cache/chunk_reader.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/gnn/chunk_mover.h"
#include "rhizome/gnn/gatherer.h"
#include "rhizome/gnn/scratch_array.h"
#include "rhizome/gnn/tile_sums.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// The features as passes read them. Threads: const. Ownership: borrows `array`.
struct FeatureSource {
  const ChunkArray& array;
  FeatureDecoder decoder;
  std::shared_ptr<const DeltaRows> delta;
  ChunkReaderOptions reader;
  std::uint64_t rows = 0;                  ///< of the graph
  std::atomic<std::uint64_t>& bytes_read;  ///< passes that are over add what they read
};

/// An input of a pass: a scratch array, or the features.
struct PassInput {
  ScratchArray* array = nullptr;  ///< null: the features
  bool operator==(const PassInput&) const = default;
};

/// The sums, or maxima, that a pass takes over lists before it computes.
struct PassGather {
  PassInput source;
  std::size_t width = 0;  ///< the first columns of the source, which are gathered
  bool forward = true;    ///< over the lists that layers walk; else over those of the other side
  GatherBy by = GatherBy::kSum;
  GatherHeads heads = {};  ///< of attention

  std::size_t columns() const { return GatheredColumns(by, width, heads); }
};

/// A tile of rows of a pass: rows [first, first + count), at most kDenseRows, of all arrays.
struct PassTile {
  std::size_t group = 0;  ///< of TileSums
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::vector<torch::Tensor> inputs;    ///< [count, columns], by GraphPass::inputs
  std::vector<torch::Tensor> gathered;  ///< [count, PassGather::columns], by GraphPass::gathers
  std::vector<torch::Tensor> outputs;   ///< to be filled in, by GraphPass::outputs
};

/// One pass over all rows in order: it reads arrays row by row, may gather rows over lists,
/// computes tile by tile, and writes arrays and sums.
struct GraphPass {
  std::string name;  ///< for progress and reports
  std::vector<PassInput> inputs = {};
  std::vector<PassGather> gathers = {};
  std::vector<ScratchArray*> outputs = {};
  std::size_t sums = 0;
  std::uint64_t summed_bytes = 0;  ///< of all sums together
  bool scores = false;             ///< it gives scores to a sink, which keeps them in memory

  /// Computes a tile, on any of the compute threads.
  std::function<void(PassTile& tile, TileSums& sums)> body = {};
};

/// Returns the number of an input of a pass, which has it from then on.
std::size_t InputOf(GraphPass& pass, const PassInput& input);

/// How passes of a job are cut. None of it changes results.
struct PassSizes {
  std::uint64_t chunk_rows = 0;   ///< of all scratch arrays, a multiple of kDenseRows
  std::uint64_t stage_bytes = 0;  ///< for the rows of a window; there are two
};

/// The lists and factors of one side: those that layers walk, or the other one's.
/// Ownership: borrows the factors.
struct GatherSide {
  PassDrawOptions draw = {};
  std::vector<std::uint32_t> degrees;
  GatherFactors factors;
};

/// The blocks of all rows, by whether layers walk their lists and by how many rows one has at most:
/// they are made once, as each time takes a look at every row.
using MadeBlocks = std::map<std::pair<bool, std::uint64_t>, std::vector<Block>>;

/// Everything that passes of a job have in common.
/// Threads: one at a time.
/// Ownership: borrows all.
struct PassGround {
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

  /// How a gathering is cut into blocks and windows. `block_bytes`: for the sums and lists of a
  /// block.
  GatherShape ShapeOf(const PassGather& gather, std::uint64_t block_bytes) const;
};

/// A point of a pass at which all rows of its first chunks are computed.
struct PassPoint {
  std::uint64_t chunk = 0;
  TileSums sums{0};  ///< of the tiles before
};

/// The way in which a pass is run.
struct PassCut {
  std::uint64_t block_bytes = 0;  ///< of each of its gatherings
  PassPoint* from = nullptr;      ///< where an earlier process left it; null: at the first chunk

  /// Told of each point that it reaches before its end, when all up to it is given to the mover.
  /// May be empty.
  std::function<Status(const PassPoint& point)> reached = {};
};

/// Runs the next pass of a mover's plan. `phase`: what progress shows. Errors: those of reading,
/// writing and the lists; kInterrupted.
Result<TileSums> RunPass(const GraphPass& pass, const PassGround& ground, const PassCut& cut,
                         ChunkMover& mover, const std::string& phase, const JobControl& control);

/// Returns the bytes of scratch arrays' chunks that a pass reads and makes at once, without those
/// that stay.
std::uint64_t ChunksOfPass(const GraphPass& pass);

/// Returns the memory that a pass takes, without the chunks that stay. `threads`: that compute.
std::uint64_t BytesOfPass(const GraphPass& pass, const PassGround& ground,
                          std::uint64_t block_bytes, std::uint32_t threads);

}  // namespace rhizome::inline internal
