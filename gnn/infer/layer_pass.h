#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/block_stager.h"
#include "rhizome/cache/labels.h"
#include "rhizome/cache/layer_output.h"
#include "rhizome/cache/pass_order.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/tile_layer.h"
#include "rhizome/index/graph.h"

namespace rhizome::inline internal {

/// What one layer of layerwise inference works on. All borrowed.
struct LayerPassInput {
  const GraphSnapshot& graph;
  const Model& model;
  const ClassLabels* labels;               ///< null: no accuracy is counted
  const ChunkArray& source;                ///< the layer before, or the features
  const FeatureDecoder& decoder;           ///< of `source`
  std::shared_ptr<const DeltaRows> delta;  ///< over `source`; or null
  std::uint32_t layer = 0;
  bool last = false;
  bool scores = false;  ///< last layer: put out class scores
  PassReads pass;
  std::optional<BlockReads> reads = {};  ///< of the whole layer, if it was planned before
};

/// Of class scores [rows or more, classes].
AccuracyCounts CountCorrect(const ClassLabels& labels, std::span<const Row> rows,
                            const torch::Tensor& scores);

/// One pass over all blocks of a layer. Of each block, the rows that it needs are staged window by
/// window and added to the sums; then tiles of targets are multiplied and activated. Blocks are
/// planned, chunks read, decoded and staged, and results encoded and written on further threads
/// meanwhile. Threads: one at a time; works on the compute threads (compute_threads.h). Memory: a
/// row a target of a block that needs more than one window; what BlockStager and LayerOutput take.
class LayerPass {
 public:
  LayerPass(LayerPassInput input, LayerOutput& output);

  /// Errors: see RunLayerwise.
  Result<InferLayerReport> Run(const JobControl& control);

 private:
  Status RunBlocks(const std::vector<Block>& blocks, BlockPlanner planner, ChunkReader& reader);
  Status RunBlock(const Block& block, BlockStager& stager);
  Result<std::span<float>> Sums(std::size_t targets);
  Result<StagedWindow> NextWindow(BlockStager& stager);
  Status FinishTargets(const Block& block, const StagedWindow& window, const TargetRange& targets,
                       TileLayer& layer);
  void FinishTile(const Block& block, const StagedWindow& window, const TargetRange& range,
                  std::size_t own_first, TileLayer& layer, AccuracyCounts& accuracy);
  Status Report(std::uint64_t rows_of_block) const;
  Result<std::unique_ptr<ChunkReader>> OpenReader(const std::vector<Block>& blocks);

  LayerPassInput input_;
  LayerOutput& output_;
  const JobControl* control_ = nullptr;
  const std::size_t dim_;  // columns read
  const bool has_cache_;
  const TileWeights weights_;
  std::vector<float> gcn_scale_;    // [rows], GCN only: 1/sqrt(degree + 1)
  AlignedBuffer sums_;              // of the blocks that need them, one after another
  std::uint64_t most_targets_ = 0;  // of a block

  std::uint64_t rows_done_ = 0;    // of blocks that are
  AccuracyCounts chunk_accuracy_;  // of the output chunk that is being filled
  InferLayerReport report_;
};

}  // namespace rhizome::inline internal
