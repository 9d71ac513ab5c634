#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/blocks/block_stager.h"
#include "cache/blocks/layer_output.h"
#include "cache/blocks/pass_order.h"
#include "cache/feed/labels.h"
#include "cache/feed/row_types.h"
#include "cache/feed/vertex_score_sink.h"
#include "gnn/infer/device_tiles.h"
#include "gnn/models/model.h"
#include "gnn/models/related_rows.h"
#include "gnn/models/tile_layer.h"
#include "gnn/ops/torch.h"
#include "rhizome/graph.h"
#include "rhizome/infer_options.h"

namespace rhizome {
inline namespace internal {

/// The inputs of one layer of layerwise inference. All are borrowed.
struct LayerPassInput {
  const GraphSnapshot& graph;
  const Model& model;
  const ClassLabels* labels;               ///< null: no accuracy is counted
  VertexScoreSink* sink;                   ///< receives the scores of all rows, or null
  const ChunkArray& source;                ///< the previous layer's array, or the features
  const FeatureDecoder& decoder;           ///< of `source`
  std::shared_ptr<const DeltaRows> delta;  ///< changes of `source`, or null
  std::uint32_t layer = 0;
  bool last = false;
  bool scores = false;                           ///< for the last layer: write class scores
  std::span<const float> weighted_degrees = {};  ///< [rows], or empty: unweighted edges
  PassReads pass;
  std::optional<BlockReads> reads = {};  ///< reads of the whole layer, if already planned
  DeviceTiles* device = nullptr;         ///< computes the products; null: the CPU does
};

/// Counts the correct answers of class scores [at least rows.size(), classes]. A row with NaN
/// counts as wrong.
AccuracyCounts CountCorrect(const ClassLabels& labels, std::span<const Row> rows,
                            const torch::Tensor& scores);

/// Runs one layer over all its blocks. The rows that a block needs are staged window by window and
/// added to the sums; then the targets are multiplied and activated tile by tile. Concurrently,
/// other threads plan blocks, read, decode and stage chunks, and encode and write results. Memory:
/// the state of each target of a block that needs several windows, and the memory of BlockStager
/// and LayerOutput.
/// Threads: one at a time; uses the compute threads (compute_threads.h).
class LayerPass {
 public:
  LayerPass(LayerPassInput input, LayerOutput& output);

  /// Runs the layer: (1) cuts it into blocks; (2) opens the reader, which with a cache plans all
  /// reads first; (3) starts the stager; (4) runs block by block; (5) returns the report. Errors:
  /// see RunLayerwise.
  Result<InferLayerReport> Run(const JobControl& control);

 private:
  Status RunBlocks(const std::vector<Block>& blocks, BlockPlanner planner, ChunkReader& reader);
  Status RunBlock(const Block& block, BlockStager& stager);
  TargetFacts FactsOf(std::span<const Row> targets) const;
  template <typename Rows>
  std::vector<TypeId> TypesOf(const Rows& rows) const;
  Result<std::span<float>> Sums(const BlockLists& lists);
  WindowRows Prepared(const StagedWindow& window);
  template <typename Body>
  Status ForOwnWindows(StagedWindow& window, BlockStager& stager, const Body& body);
  std::size_t prepared_columns() const {
    return static_cast<std::size_t>(layer_.prepared_columns());
  }
  std::size_t state_columns() const { return static_cast<std::size_t>(layer_.state_columns()); }
  Result<StagedWindow> NextWindow(BlockStager& stager);
  void AddWindow(const StagedWindow& window, TileLayer& layer);
  Status FinishTargets(const Block& block, const StagedWindow& window, const TargetRange& targets,
                       TileLayer& layer);
  bool wants_scores() const {
    return input_.last && (input_.scores || input_.labels != nullptr || input_.sink != nullptr);
  }
  void FinishPart(const Block& block, const StagedWindow& window, const WindowRows& rows,
                  const TargetRange& range, std::size_t own_first, TileLayer& layer);
  void FinishOnDevice(const Block& block, const StagedWindow& window, const WindowRows& rows,
                      const TargetRange& range, std::size_t own_first, TileLayer& layer);
  void PutOnDevice(const TileLayer::Reduced& reduced, std::size_t first, std::size_t count);
  void TakeTile(const Block& block, const StagedWindow& window, const TargetRange& range,
                const torch::Tensor& made, const torch::Tensor& scores, AccuracyCounts& accuracy);
  Status Report(std::uint64_t rows_of_block) const;
  Result<std::unique_ptr<ChunkReader>> OpenReader(const std::vector<Block>& blocks);

  LayerPassInput input_;
  LayerOutput& output_;
  const JobControl* control_ = nullptr;
  const std::size_t dim_;  // columns read
  const bool has_cache_;
  const Layer& layer_;
  const RowTypes row_types_;
  std::vector<float> row_scale_;  // [rows] 1/sqrt(degree + 1), for symmetric sums
  AlignedBuffer sums_;            // state of targets or groups; reused by one block after another
  AlignedBuffer prepared_;        // [stage rows, prepared columns], if the layer prepares rows
  std::optional<RelatedRows> related_;  // with ConvPieces::relates
  std::uint64_t max_targets_ = 0;       // max over all blocks

  std::uint64_t rows_done_ = 0;    // rows of finished blocks
  AccuracyCounts chunk_accuracy_;  // of the output chunk that is being filled
  InferLayerReport report_;
};

}  // namespace internal
}  // namespace rhizome
