#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "rhizome/gnn/block_plan.h"
#include "rhizome/gnn/chunk_reader.h"
#include "rhizome/gnn/labels.h"
#include "rhizome/gnn/layer_output.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/parallel.h"

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
  std::uint32_t threads = 1;
};

/// One pass over all blocks of a layer. Threads: one at a time; works on `threads` of its own.
class LayerPass {
 public:
  LayerPass(const LayerPassInput& input, LayerOutput& output);

  /// Errors: see RunLayerwise.
  Result<InferLayerReport> Run(const JobControl& control);

 private:
  Status PlanReads(const std::vector<Block>& blocks, const JobControl& control);
  Status RunBlocks(const std::vector<Block>& blocks, ChunkReader& reader,
                   const JobControl& control);
  Status RunBlock(const Block& block, ChunkReader& reader);
  Status FillDegrees(const Block& block);
  void AddChunk(const Block& block, const DecodedChunk& chunk, std::size_t tile);
  void FinishTile(const Block& block, std::size_t tile);
  AccuracyCounts CountCorrect(Row first, const torch::Tensor& scores) const;
  template <typename Work>
  void ForTiles(const Block& block, Work work);

  const LayerPassInput input_;
  const BlockPlanner* planner_ = nullptr;  // lives in Run
  LayerOutput& output_;
  TaskArena arena_;
  const std::int64_t dim_;        // columns read
  std::vector<float> gcn_scale_;  // [rows], GCN only: 1/sqrt(degree + 1)

  // Of the current block. Tensors are made by libtorch, whose memory is aligned: the linear algebra
  // below gives the same bits only for equally aligned operands.
  BlockLists lists_;
  std::vector<std::uint32_t> local_;    // [edges] neighbour's row within its chunk
  std::vector<std::uint32_t> cursors_;  // [targets] first edge not added yet
  std::vector<std::uint32_t> ends_;     // [targets] edges of the current chunk end here
  std::vector<std::uint32_t> degrees_;  // [targets], GCN only
  torch::Tensor self_;                  // [block, dim_]
  torch::Tensor sums_;                  // [block, dim_]
  std::vector<AccuracyCounts> tile_accuracy_;

  std::vector<std::uint64_t> reads_;  // chunks of all blocks, in order
  AccuracyCounts chunk_accuracy_;     // of the output chunk that is being filled
  InferLayerReport report_;
};

}  // namespace rhizome
