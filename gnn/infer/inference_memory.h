#pragma once

#include <cstdint>

#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/layerwise_options.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/graph.h"

namespace rhizome::inline internal {

/// How an inference job uses the memory that it may take.
struct InferMemory {
  LayerMemory layers;
  std::uint64_t block_rows = 0;  ///< InferTuning::block_rows, or what a samplewise run takes
  std::uint64_t neighbor_cache_bytes = 0;
};

/// The job whose memory is divided. All is borrowed. `layerwise.output` is complete; its memory is
/// not read.
struct InferMemoryInput {
  const GraphSnapshot& graph;
  const Model& model;
  const InferOptions& options;
  const LayerwiseOptions& layerwise;
  bool lists_are_read = false;   ///< from disk
  bool one_writer = false;       ///< chunks must be told of in their order
  std::uint64_t base_bytes = 0;  ///< what the bare process takes

  /// Pinned memory for a device, of which not all systems say that the process holds it.
  std::uint64_t pinned_bytes = 0;
};

/// Divides options.memory_bytes beyond the bare footprint: stage, chunks ahead and writers, then as
/// much as possible for the sums of a block, then a cache. Sizes do not change results. Errors:
/// kOutOfMemory, saying how much is needed.
Result<InferMemory> DivideMemory(const InferMemoryInput& input);

/// A worker's share of what options.memory_bytes leaves beside this process, which takes
/// `own_bytes` to cut ranges; 0: no limit. Errors: kOutOfMemory, nothing is left.
Result<std::uint64_t> WorkerBytes(const InferOptions& options, std::uint64_t own_bytes,
                                  std::uint64_t base_bytes);

}  // namespace rhizome::inline internal
