#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/gnn/torch.h"
#include "rhizome/gnn/weights.h"

namespace rhizome::inline internal {

/// The options that every network has: what surrounds its convolutions.
std::vector<ModelOption> LayerOptions();

enum class Nonlinearity : std::uint8_t { kNone, kRelu, kElu, kGelu, kTanh };
enum class Jump : std::uint8_t { kNone, kConcat, kMax };

/// The surroundings of the convolutions of a network, the same for all its layers.
struct LayerStyle {
  Nonlinearity activation = Nonlinearity::kRelu;
  Normalization norm = Normalization::kNone;
  bool residual = false;
  bool feed_forward = false;
  Jump jump = Jump::kNone;
  double dropout = 0;

  static LayerStyle Of(const ModelOptions& options, double dropout);
};

/// The place of a layer in its network.
struct LayerShape {
  std::uint32_t number = 0;    ///< from 0
  std::int64_t raw = 0;        ///< columns of the rows that it reads
  std::int64_t in = 0;         ///< columns that its convolution reads
  std::int64_t out = 0;        ///< columns that its convolution makes
  bool last = false;           ///< its output is the embedding
  bool is_output = false;      ///< and the scores too: the network has no head
  std::int64_t first = 0;      ///< columns of the first hidden rows that every row carries
  std::int64_t jump_from = 0;  ///< carried columns of earlier layers' outputs, in what it reads
};

/// A convolution and what surrounds it. A row between two layers is [hidden | first | jump]: the
/// output of the layer before, the first hidden row if the kind reads it (ConvPieces), and what a
/// jumping-knowledge network keeps of earlier layers. Everything but the reduction works row by
/// row, but for the statistics of batch norm while training.
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

  /// Columns of the rows that it makes.
  std::int64_t raw_out() const;

  /// Whether rows are changed before they are reduced.
  bool prepares() const { return enters_ || pieces_.projects; }

  /// Columns of a prepared row: the reduced row, then the scores of a source.
  std::int64_t prepared_columns() const { return pieces_.width + pieces_.score_columns(); }

  /// Whether it reads a target's own row when the target's reduction is complete.
  bool finish_reads_own() const;

  /// Numbers that a target keeps from window to window: the reduced row; of attention also maximum
  /// and denominator of each head, and what the target asks.
  std::int64_t state_columns() const {
    if (!pieces_.attends()) return pieces_.width;
    return pieces_.width + 2 * pieces_.reduce.attention.heads + pieces_.query_columns();
  }

  /// Whether its outputs are rectified, with zeros in many places.
  bool makes_zeros() const;

  /// Calls visit for every weight, with names that begin with "layers.<number>.".
  void VisitWeights(const WeightVisitor& visit) const;

  /// Computes the rows of targets with gradients: raw [sources, raw] -> [targets, raw_out].
  torch::Tensor Forward(const LayerRows& raw, const LayerGraph& graph, const RunMode& mode) const;

  // In training on the full graph: rows are prepared, gathered (which is reducing them over lists,
  // by sum or mean) and finished, by tiles of rows that are whole rows of the graph. With gradients
  // if the calling thread records them; from any thread.

  /// Whether rows are multiplied by the weights of their reduction before they are gathered, which
  /// makes them narrower.
  bool multiplies_first() const;

  /// Whether gathered rows are not simply the first columns of what the layer reads.
  bool prepares_gathered() const { return prepares() || multiplies_first(); }

  /// Columns of a gathered row.
  std::int64_t gathered_columns() const { return multiplies_first() ? shape_.out : pieces_.width; }

  /// Whether FinishGathered reads what the layer reads of the targets themselves.
  bool finish_reads_raw() const;

  /// Batch norms whose statistics Finish needs (GraphNorms).
  std::size_t batch_norms() const;

  /// Whether one of them is over targets alone, which are the seeds of a minibatch in the last
  /// layer.
  bool norms_targets() const;

  /// Computes the rows to be gathered: [n, raw] -> [n, gathered_columns()].
  torch::Tensor PrepareGathered(const torch::Tensor& raw, const RunMode& mode) const;

  /// Computes the same rows of a layer that attends, and beside each its scores, if it has some,
  /// and what it asks of its sources.
  torch::Tensor PrepareAttended(const torch::Tensor& raw, const RunMode& mode) const;
  AttentionShape ShapeOfAttention(const RunMode& mode) const {
    return conv_->ShapeOfAttention(mode);
  }

  /// Computes the layer's rows: raw [n, raw], or undefined unless finish_reads_raw(), and gathered
  /// [n, gathered_columns()] -> [n, raw_out].
  torch::Tensor FinishGathered(const torch::Tensor& raw, const torch::Tensor& gathered,
                               const RunMode& mode) const;

  /// Numbers that a training step keeps for so many targets and sources.
  std::uint64_t StepNumbers(std::uint64_t targets, std::uint64_t sources) const;

  // In layerwise inference, without gradients, on tiles of kDenseRows rows, from any thread; or
  // with weights that were moved to a device, on any rows that are there, from one thread:

  /// Prepares what Finish needs many times. Must not overlap the others.
  void Freeze() const { conv_->Freeze(); }

  /// Rows as the layer works on them: to be added to its result, and to be convolved.
  struct Entered {
    LayerRows stream;
    LayerRows input;
    Entered First(std::int64_t count) const { return {stream.First(count), input.First(count)}; }
  };

  Entered Enter(const torch::Tensor& raw, Device* device = nullptr) const {
    return Enter({raw}, {.device = device});
  }

  /// Returns the rows of sources as they are reduced: [n, width].
  torch::Tensor Prepare(const Entered& rows, Device* device = nullptr) const;

  /// The parts of attention, as in Conv: the scores of sources, what targets ask, and the vectors
  /// of scores.
  torch::Tensor SourceScores(const torch::Tensor& prepared) const {
    return conv_->SourceScores(prepared);
  }
  torch::Tensor Query(const Entered& own, const torch::Tensor& prepared) const;
  torch::Tensor ScoreVectors() const { return conv_->ScoreVectors().contiguous(); }

  /// Columns of own rows that the tile of Finish begins with.
  std::int64_t own_columns() const { return pieces_.update_reads_own ? shape_.in : 0; }

  /// Whether these columns are just the raw row.
  bool own_is_raw() const { return !enters_ && shape_.raw == shape_.in; }

  /// Computes outputs of targets. `raw`: their own rows, [n, raw], or undefined if
  /// finish_reads_own() is false, and `own` the same entered. `tile`: [own_columns | width], the
  /// own columns filled in only if own_is_raw().
  torch::Tensor Finish(const torch::Tensor& raw, const Entered& own, torch::Tensor& tile,
                       Device* device = nullptr) const;

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

  /// Whether the convolution computes activation and dropout together with its products.
  bool fuses() const;

  /// The tensors beside those of the convolution are handles that Visit fills in.
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

/// Applies an activation function, with gradients; on a device that has the rows, or null.
torch::Tensor ApplyNonlinearity(Nonlinearity kind, const torch::Tensor& x, Device* device);

}  // namespace rhizome::inline internal
