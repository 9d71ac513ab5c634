#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/storage/manifest.h"

namespace rhizome::inline internal {

/// The memory of a layerwise run, divided, in bytes. None of it changes results.
struct LayerMemory {
  std::uint64_t cache_bytes = 0;                        ///< for decoded chunks
  std::uint64_t block_bytes = std::uint64_t{64} << 20;  ///< for the sums and lists of a block

  /// Bytes of the rows that a window of a block works on, at least one row. There are two such
  /// stages.
  std::uint64_t stage_bytes = std::uint64_t{8} << 20;

  /// Bytes of decoded chunks that wait to be staged, at least two chunks; see
  /// ChunkReader::WorkingBytes.
  std::uint64_t ahead_bytes = std::uint64_t{16} << 20;
  std::uint64_t layout_bytes = ~std::uint64_t{0};  ///< for counting, before a cache is taken
  std::uint32_t writers = 1;                       ///< threads that encode and write chunks
};

struct LayerwiseOptions {
  std::string features;
  std::vector<std::int64_t> fanouts;  ///< one for each layer; empty: all neighbours

  /// How they are drawn, as ResolveSampling makes it, with fanouts by edge type if it has any.
  MinibatchSamplerOptions sampling = {};
  ArrayEntry output;         ///< what the last layer writes, as MakeOutputEntry makes it
  bool scores = false;       ///< the output holds class scores instead of embeddings
  bool write_output = true;  ///< false: only the accuracy is computed

  /// The rows of the last layer that are wanted, ascending and at least one; the output has only
  /// these. Absent: all rows.
  std::optional<std::vector<std::uint32_t>> targets = {};
  std::uint64_t chunk_rows = 0;  ///< of every array that is written; 0: chosen
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// How chunks are kept, blocks cut (block_rows; 0: as many as memory.block_bytes hold) and rows
  /// placed (layout; without a log: stored). The sizes of caches are those of `memory`.
  InferTuning tuning = {};
  LayerMemory memory = {};
  bool direct = false;                                        ///< read chunks past the page cache
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< null: the graph, in memory
};

}  // namespace rhizome::inline internal
