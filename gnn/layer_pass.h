#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "rhizome/gnn/block_plan.h"
#include "rhizome/gnn/bounded_queue.h"
#include "rhizome/gnn/chunk_reader.h"
#include "rhizome/gnn/labels.h"
#include "rhizome/gnn/layer_output.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/tile_layer.h"
#include "rhizome/index/graph.h"

namespace rhizome {

/// What one layer of layerwise inference works on. All borrowed.
struct LayerPassInput {
  const Graph& graph;
  const Model& model;
  const Labels* labels;                    ///< null: no accuracy is counted
  const ChunkArray& source;                ///< the layer before, or the features
  const FeatureDecoder& decoder;           ///< of `source`
  std::shared_ptr<const DeltaRows> delta;  ///< over `source`; or null
  std::uint32_t layer = 0;
  bool last = false;
  bool scores = false;  ///< last layer: put out class scores
  BlockPlannerOptions planner;
  ChunkReaderOptions reader;
  std::uint64_t block_rows = 1024;
  std::uint64_t block_edges = ~std::uint64_t{0};
};

/// The blocks of a layer whose targets stand in `order`: as LayerPass cuts them.
std::vector<Block> BlocksOfLayer(const ArrayEntry& output, const BlockPlannerOptions& planner,
                                 std::uint64_t block_rows, std::uint64_t block_edges,
                                 const std::vector<bool>& done);

/// Of class scores [rows or more, classes].
AccuracyCounts CountCorrect(const Labels& labels, std::span<const Row> rows,
                            const torch::Tensor& scores);

/// One pass over all blocks of a layer. Of each block, planned ahead on a thread, the rows that it
/// needs are copied from the chunks that hold them to the stage, window by window, whatever order
/// they come in, and added to the sums; then tiles of targets are multiplied and activated. Chunks
/// are read and decoded, and results encoded and written, on further threads meanwhile. Threads:
/// one at a time; works on the compute threads (compute_threads.h). Memory: the stage, a row a
/// target of a block that needs more than one window, two blocks' lists, what ChunkReader and
/// LayerOutput take.
class LayerPass {
 public:
  LayerPass(const LayerPassInput& input, LayerOutput& output);

  /// Errors: see RunLayerwise.
  Result<InferLayerReport> Run(const JobControl& control);

 private:
  Status PlanBlocks(const std::vector<Block>& blocks, BoundedQueue<BlockLists>& planned) const;
  Status RunBlocks(const std::vector<Block>& blocks, BoundedQueue<BlockLists>& planned,
                   ChunkReader& reader);
  Status RunBlock(const Block& block, const BlockLists& lists, ChunkReader& reader);
  Status FinishTargets(const Block& block, const BlockLists& lists, const TargetRange& targets,
                       TileLayer& layer);
  void FinishTile(const Block& block, const BlockLists& lists, const TargetRange& range,
                  std::size_t own_first, TileLayer& layer, AccuracyCounts& accuracy);
  Status StageWindow(const BlockLists& lists, std::size_t window, ChunkReader& reader);
  Status Report() const;

  const LayerPassInput input_;
  LayerOutput& output_;
  const JobControl* control_ = nullptr;
  const std::size_t dim_;  // columns read
  const TileWeights weights_;
  std::vector<float> gcn_scale_;  // [rows], GCN only: 1/sqrt(degree + 1)

  torch::Tensor stage_;             // [stage rows, dim_]
  std::vector<float> stage_scale_;  // [stage rows], GCN only
  std::uint64_t next_request_ = 0;
  std::uint64_t windows_ = 0;      // of the layer
  std::uint64_t staged_ = 0;       // windows
  AccuracyCounts chunk_accuracy_;  // of the output chunk that is being filled
  InferLayerReport report_;
};

}  // namespace rhizome
