#pragma once

#include <cstdint>

#include "gnn/infer/layerwise_options.h"
#include "gnn/models/model.h"
#include "rhizome/graph.h"
#include "rhizome/infer_options.h"

namespace rhizome {
inline namespace internal {

/// The division of an inference job's memory.
struct InferMemory {
  LayerMemory layers;
  std::uint64_t block_rows = 0;  ///< InferTuning::block_rows, or rows of a samplewise minibatch
  std::uint64_t neighbor_cache_bytes = 0;
};

/// The job whose memory is divided. All references are borrowed. `layerwise.output` must be
/// complete; `layerwise.memory` is ignored.
struct InferMemoryInput {
  const GraphSnapshot& graph;
  const Model& model;
  const InferOptions& options;
  const LayerwiseOptions& layerwise;
  bool lists_are_read = false;   ///< neighbour lists are on disk
  bool one_writer = false;       ///< chunks must be reported in their order
  std::uint64_t base_bytes = 0;  ///< memory of the bare process

  /// Pinned memory for a device. Not all systems count it as memory of the process.
  std::uint64_t pinned_bytes = 0;
};

/// Divides options.memory_bytes beyond the bare footprint: first the stage, the chunks read ahead
/// and the writers; then as much as possible for the sums of a block; then a cache. Sizes do not
/// change results. Errors: kOutOfMemory, with the amount that is needed.
Result<InferMemory> DivideMemory(const InferMemoryInput& input);

/// Returns a worker's share of what options.memory_bytes leaves after this process, which needs
/// `own_bytes` to cut ranges; 0: no limit. Errors: kOutOfMemory, no memory is left.
Result<std::uint64_t> WorkerBytes(const InferOptions& options, std::uint64_t own_bytes,
                                  std::uint64_t base_bytes);

}  // namespace internal
}  // namespace rhizome
