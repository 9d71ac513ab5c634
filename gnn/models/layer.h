#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gnn/models/weights.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Returns the options that every network has: everything around its convolutions.
std::vector<ModelOption> LayerOptions();

enum class Nonlinearity : std::uint8_t { kNone, kRelu, kElu, kGelu, kTanh };
enum class Jump : std::uint8_t { kNone, kConcat, kMax };

/// Everything around the convolutions of a network, the same for all its layers.
struct LayerStyle {
  Nonlinearity activation = Nonlinearity::kRelu;
  Normalization norm = Normalization::kNone;
  bool residual = false;
  bool feed_forward = false;
  Jump jump = Jump::kNone;
  double dropout = 0;

  static LayerStyle Of(const ModelOptions& options, double dropout);
};

/// The position of a layer in its network, and its widths.
struct LayerShape {
  std::uint32_t number = 0;    ///< from 0
  std::int64_t raw = 0;        ///< columns of the rows that it reads
  std::int64_t in = 0;         ///< columns that its convolution reads
  std::int64_t out = 0;        ///< columns that its convolution outputs
  bool last = false;           ///< its output is the embedding
  bool is_output = false;      ///< its output is the scores, too: the network has no head
  std::int64_t first = 0;      ///< columns of the first hidden rows, which every row carries
  std::int64_t jump_from = 0;  ///< carried columns of earlier layers' outputs, in its input
};

/// The reduced rows of the groups of some targets.
struct GroupedRows {
  torch::Tensor rows;   ///< [groups, width]
  GroupedLists groups;  ///< as in UpdateRows; empty: edges are not grouped

  /// Vertex types of the targets, with ConvPieces::by_vertex_type.
  std::span<const TypeId> types = {};
};

/// A convolution, and the normalisation, activation, dropout and skip connections around it. A row
/// between two layers is [hidden | first | jump]: the output of the previous layer, the first
/// hidden row if the kind reads it (ConvPieces), and the outputs of earlier layers that jumping
/// knowledge keeps. Everything but the reduction works row by row, except for the statistics of
/// batch norm in training.
///
/// A plain layer is  dropout(activation(norm(conv(x)))) (+ x, or W x where widths differ, if it is
/// residual: Jia et al., ROC (MLSys 2020), section 7.5).
/// A feed-forward layer is  x + dropout(W dropout(activation(conv(norm(x))))), after an input layer
/// and before a last norm: Platonov et al., "A critical look at the evaluation of GNNs under
/// heterophily" (ICLR 2023), appendix D.
/// Jumping knowledge: Xu et al. (ICML 2018).
class Layer {
 public:
  Layer(const LayerShape& shape, const LayerStyle& style, std::shared_ptr<Conv> conv);

  const LayerShape& shape() const { return shape_; }
  const ConvPieces& pieces() const { return pieces_; }

  /// Returns the number of columns of the rows that it outputs.
  std::int64_t raw_out() const;

  /// Returns whether rows are transformed before they are reduced.
  bool prepares() const { return enters_ || pieces_.projects; }

  /// Returns the columns of a prepared row: the projected row, followed by the scores of a source.
  std::int64_t prepared_columns() const {
    return pieces_.source_columns() + pieces_.score_columns();
  }

  /// Returns whether a target's own row is read after the target's reduction is complete.
  bool finish_reads_own() const;

  /// Returns the floats that a target, or each of its groups, keeps from window to window: the
  /// reduced row; for attention also the maximum and denominator of each head, and the target's
  /// query.
  std::int64_t state_columns() const {
    if (!pieces_.attends()) return pieces_.width;
    return pieces_.width + 2 * pieces_.reduce.attention.heads + pieces_.query_columns();
  }

  /// Returns whether outputs are rectified (ReLU), so that many of them are zero.
  bool makes_zeros() const;

  /// Calls visit for every weight, with names that begin with "layers.<number>.".
  void VisitWeights(const WeightVisitor& visit) const;

  /// Computes the rows of targets with gradients: raw [sources, raw] -> [targets, raw_out].
  torch::Tensor Forward(const LayerRows& raw, const LayerGraph& graph, const RunMode& mode) const;

  // For training on the full graph. Rows are prepared, aggregated over lists by the caller, and
  // finished, in tiles of rows. With gradients if the calling thread records them. Any thread may
  // call these functions.

  /// Returns whether rows are multiplied by the weight of the reduction before they are aggregated,
  /// which makes them narrower.
  bool multiplies_first() const;

  /// Returns whether the rows to aggregate differ from the first columns of the layer's input.
  bool prepares_gathered() const { return prepares() || multiplies_first(); }

  /// Returns the number of columns of an aggregated row.
  std::int64_t gathered_columns() const { return multiplies_first() ? shape_.out : pieces_.width; }

  /// Returns whether FinishGathered reads the targets' own rows in the layer's input.
  bool finish_reads_raw() const;

  /// Returns the number of batch norms whose statistics the layer needs (GraphNorms).
  std::size_t batch_norms() const;

  /// Returns whether one of them is over targets only, which in the last layer are the seeds of a
  /// minibatch.
  bool norms_targets() const;

  /// Computes the rows to aggregate: [n, raw] -> [n, gathered_columns()].
  torch::Tensor PrepareGathered(const torch::Tensor& raw, const RunMode& mode) const;

  /// Computes the rows to aggregate of a layer with attention. Each row is followed by its scores,
  /// for additive scores, and by its query.
  torch::Tensor PrepareAttended(const torch::Tensor& raw, const RunMode& mode) const;
  AttentionShape ShapeOfAttention(const RunMode& mode) const {
    return conv_->ShapeOfAttention(mode);
  }

  /// Computes the layer's output: raw [n, raw], or undefined unless finish_reads_raw(), and
  /// aggregated rows [n, gathered_columns()] -> [n, raw_out].
  torch::Tensor FinishGathered(const torch::Tensor& raw, const torch::Tensor& gathered,
                               const RunMode& mode) const;

  /// Returns the floats that a training step keeps for the given numbers of targets, sources and
  /// groups.
  std::uint64_t StepNumbers(std::uint64_t targets, std::uint64_t sources,
                            std::uint64_t groups) const;

  // For layerwise inference, without gradients: on tiles of kDenseRows rows, from any thread; or,
  // if the weights are on a device, on any rows there, from one thread.

  /// Prepares data that Finish uses repeatedly. Must not overlap other calls.
  void Freeze() const { conv_->Freeze(); }

  /// Rows inside the layer: `stream` is added to the layer's result, `input` is convolved.
  struct Entered {
    LayerRows stream;
    LayerRows input;
    Entered First(std::int64_t count) const { return {stream.First(count), input.First(count)}; }
  };

  /// Enters rows. With ConvPieces::by_vertex_type they have LayerRows::types.
  Entered Enter(const LayerRows& raw, Device* device = nullptr) const {
    return Enter(raw, {.device = device});
  }

  /// Returns the projected rows of sources: [n, ConvPieces::source_columns()].
  torch::Tensor Prepare(const Entered& rows, Device* device = nullptr) const;

  /// Multiplies prepared rows [any, prepared_columns()], as Conv::Relate. On the compute threads.
  void Relate(const float* prepared, const RowsByClass& pairs, std::span<const std::uint32_t> row,
              float* out) const;

  /// The pieces of attention, as in Conv: scores of sources, queries of targets, and score vectors.
  torch::Tensor SourceScores(const torch::Tensor& prepared) const {
    return conv_->SourceScores(prepared);
  }
  torch::Tensor Query(const Entered& own, const torch::Tensor& prepared) const;
  torch::Tensor ScoreVectors() const { return conv_->ScoreVectors().contiguous(); }

  /// Returns the number of own-row columns with which the tile of Finish begins.
  std::int64_t own_columns() const { return pieces_.update_reads_own ? shape_.in : 0; }

  /// Returns whether these columns are the raw row.
  bool own_is_raw() const { return !enters_ && shape_.raw == shape_.in; }

  /// Computes the outputs of targets. `raw`: their own rows, [n, raw], or undefined if
  /// finish_reads_own() is false. `own`: the same rows, entered. `tile`: [own_columns | width]; its
  /// own columns need only be set if own_is_raw(). If edges are grouped, the tile is [own_columns],
  /// and `groups` has the reduced rows.
  torch::Tensor Finish(const torch::Tensor& raw, const Entered& own, torch::Tensor& tile,
                       Device* device = nullptr, const GroupedRows& groups = {}) const;

 private:
  Entered Enter(const LayerRows& raw, const RunMode& mode) const;
  torch::Tensor FirstRows(const Entered& own, const LayerRows& raw) const;
  torch::Tensor Leave(torch::Tensor convolved, bool activated, const Entered& own,
                      const LayerRows& raw, const RunMode& mode) const;
  torch::Tensor Carry(const torch::Tensor& out, const Entered& own, const LayerRows& raw) const;
  torch::Tensor Dropped(const torch::Tensor& x, std::uint64_t draw, const RunMode& mode) const;
  bool has_stem() const { return shape_.number == 0 && (style_.feed_forward || shape_.first > 0); }
  bool normed() const { return style_.norm != Normalization::kNone && !shape_.is_output; }
  std::uint64_t Draw(std::uint64_t which) const;

  /// Returns whether the convolution computes activation and dropout together with its products.
  bool fuses() const;

  /// Tensors besides the convolution's. They are handles that VisitWeights fills in.
  struct Weights {
    DenseWeights stem;
    NormWeights norm;
    DenseWeights feed;
    torch::Tensor skip;  // [out, in]
    NormWeights last_norm;
  };

  const LayerShape shape_;
  const LayerStyle style_;
  const std::shared_ptr<Conv> conv_;
  const ConvPieces pieces_;
  const bool enters_;
  const std::shared_ptr<Weights> weights_ = std::make_shared<Weights>();
};

/// Applies an activation function, with gradients. `device`: the device that holds the rows, or
/// null.
torch::Tensor ApplyNonlinearity(Nonlinearity kind, const torch::Tensor& x, Device* device);

}  // namespace internal
}  // namespace rhizome
