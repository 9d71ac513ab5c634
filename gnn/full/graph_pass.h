#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/chunk_reader.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/gnn/gatherer.h"
#include "rhizome/gnn/scratch_array.h"
#include "rhizome/gnn/scratch_streams.h"
#include "rhizome/gnn/tile_sums.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// The features as passes read them. Threads: const. Ownership: borrows `array`.
struct FeatureSource {
  const ChunkArray& array;
  FeatureDecoder decoder;
  std::shared_ptr<const DeltaRows> delta;
  ChunkReaderOptions reader;
  std::uint64_t rows = 0;  ///< of the graph
};

/// An input of a pass: a scratch array, or the features.
struct PassInput {
  ScratchArray* array = nullptr;  ///< null: the features
  bool operator==(const PassInput&) const = default;
};

/// The sums that a pass takes over lists before it computes.
struct PassGather {
  PassInput source;
  std::size_t width = 0;  ///< the first columns of the source, which are summed
  bool forward = true;    ///< over the lists that layers walk; else over those of the other side
};

/// A tile of rows of a pass: rows [first, first + count), at most kDenseRows, of all arrays.
struct PassTile {
  std::size_t group = 0;  ///< of TileSums
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::vector<torch::Tensor> inputs;   ///< [count, columns], by GraphPass::inputs
  torch::Tensor gathered;              ///< [count, width], or undefined
  std::vector<torch::Tensor> outputs;  ///< to be filled in, by GraphPass::outputs
};

/// One pass over all rows in order: it reads arrays row by row, may gather rows over lists,
/// computes tile by tile, and writes arrays and sums.
struct GraphPass {
  std::string name;  ///< for progress and reports
  std::vector<PassInput> inputs = {};
  std::optional<PassGather> gather = {};
  std::vector<ScratchArray*> outputs = {};
  std::vector<ScratchArray*> dropped = {};  ///< arrays that are of no use after it
  std::size_t sums = 0;
  std::uint64_t summed_bytes = 0;  ///< of all sums together

  /// Computes a tile, on any of the compute threads.
  std::function<void(PassTile& tile, TileSums& sums)> body = {};
};

/// How passes of a job are cut. None of it changes results.
struct PassSizes {
  std::uint64_t chunk_rows = 0;   ///< of all scratch arrays, a multiple of kDenseRows
  std::uint64_t block_bytes = 0;  ///< for the sums and lists of a block
  std::uint64_t stage_bytes = 0;  ///< for the rows of a window; there are two
  std::size_t ahead = 2;          ///< chunks of a scratch array that are read ahead
  std::uint64_t feature_ahead_bytes = 0;
};

/// The lists and factors of one side: those that layers walk, or the other one's.
/// Ownership: borrows the factors.
struct GatherSide {
  PassDrawOptions draw = {};
  std::vector<std::uint32_t> degrees;
  GatherFactors factors;
};

/// Everything that passes of a job have in common.
/// Ownership: borrows all.
struct PassGround {
  const GraphSnapshot& graph;
  const FeatureSource& features;
  const GatherSide& forward;
  const GatherSide& backward;
  PassSizes sizes;

  std::uint64_t rows() const { return graph.vertex_count(); }
  const GatherSide& SideOf(const PassGather& gather) const {
    return gather.forward ? forward : backward;
  }
  std::uint64_t ColumnsOf(const PassInput& input) const;
  std::uint64_t ChunkRowsOf(const PassInput& input) const;

  /// How a gathering is cut into blocks and windows.
  GatherShape ShapeOf(const PassGather& gather) const;
};

/// Runs a pass. `phase`: what progress shows. Errors: those of reading, writing and the lists;
/// kInterrupted.
Result<TileSums> RunPass(const GraphPass& pass, const PassGround& ground, const std::string& phase,
                         const JobControl& control);

/// The bytes that a pass moves between memory and files, by array.
struct PassCount {
  std::map<std::string, std::uint64_t> read, written;
  std::uint64_t blocks = 0;
};

/// Counts that exactly, without a pass over anything but the lists. With `exact` false it takes
/// every block for one that reads its whole source, and looks at no list.
Result<PassCount> CountPass(const GraphPass& pass, const PassGround& ground, bool exact,
                            const JobControl& control);

/// Returns the memory that a pass takes, without resident chunks. `threads`: that compute.
std::uint64_t BytesOfPass(const GraphPass& pass, const PassGround& ground, std::uint32_t threads);

}  // namespace rhizome::inline internal
