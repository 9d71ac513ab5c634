#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/feed/minibatch_sampler.h"
#include "rhizome/infer_options.h"
#include "rhizome/manifest.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/sampler.h"

namespace rhizome {
inline namespace internal {

/// Memory budget of a layerwise run, in bytes. It does not change results.
struct LayerMemory {
  std::uint64_t cache_bytes = 0;                        ///< for decoded chunks
  std::uint64_t block_bytes = std::uint64_t{64} << 20;  ///< for the sums and lists of a block

  /// Size of a stage, which holds the rows of one window of a block; at least one row. There are
  /// two stages.
  std::uint64_t stage_bytes = std::uint64_t{8} << 20;

  /// Max size of the decoded chunks that wait to be staged; at least two chunks. See
  /// ChunkReader::WorkingBytes.
  std::uint64_t ahead_bytes = std::uint64_t{16} << 20;
  std::uint64_t layout_bytes = ~std::uint64_t{0};  ///< for choosing row orders
  std::uint32_t writers = 1;                       ///< threads that encode and write chunks
};

struct LayerwiseOptions {
  std::string features;

  /// Instead of `features`, for a model with inputs by type: the array of each vertex type of the
  /// graph, in its order (InputsOfModel).
  std::vector<FeatureInput> inputs = {};
  std::vector<std::int64_t> fanouts;  ///< one for each layer; empty: all neighbours

  /// Sampling settings from ResolveSampling, with fanouts by edge type if there are any.
  MinibatchSamplerOptions sampling = {};

  /// For typed models: max number of groups of all rows together (MostGroups); 0: unknown.
  std::uint64_t groups = 0;
  ArrayEntry output;         ///< array of the last layer, from MakeOutputEntry
  bool scores = false;       ///< the output holds class scores instead of embeddings
  bool write_output = true;  ///< false: only the accuracy is computed

  /// Rows of the last layer to compute, ascending and not empty; the output has only these rows.
  /// Absent: all rows.
  std::optional<std::vector<std::uint32_t>> targets = {};
  std::uint64_t chunk_rows = 0;  ///< in every written array; 0: chosen automatically
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// Cache policy, block size (block_rows; 0: as large as memory.block_bytes allows) and row order
  /// (layout; without a log: stored). Cache sizes come from `memory`, not from here.
  InferTuning tuning = {};
  LayerMemory memory = {};
  bool direct = false;                                        ///< bypass the page cache
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< null: the graph, in memory
};

}  // namespace internal
}  // namespace rhizome
