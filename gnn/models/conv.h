#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/gnn/activation.h"
#include "rhizome/gnn/attention_ops.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/gnn/layer_graph.h"
#include "rhizome/gnn/model_options.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/storage/mix.h"

namespace rhizome::inline internal {

/// A tensor of a network, as it is made, stored and read.
struct WeightSpec {
  enum class Fill : std::uint8_t { kGlorot, kZeros, kOnes };
  std::string name;
  std::vector<std::int64_t> shape;
  Fill fill = Fill::kGlorot;
  bool trained = true;  ///< false: a statistic that training keeps, without a gradient
};
using WeightVisitor = std::function<void(const WeightSpec& spec, torch::Tensor& weight)>;

struct GraphNorms;

/// How the network is run: to learn, with a seed from which every dropout is drawn, or to evaluate.
struct RunMode {
  const std::uint64_t* dropout_seed = nullptr;  ///< null: evaluation, nothing is dropped
  std::int64_t first_row = 0;   ///< where dropout is drawn: the number of the first row
  GraphNorms* norms = nullptr;  ///< statistics of batch norms over more rows than are given
  Device* device = nullptr;     ///< that has rows and weights; null: they are the processor's
  bool training() const { return dropout_seed != nullptr; }

  /// Returns the seed of draw `number`; different numbers draw independently.
  std::uint64_t Seed(std::uint64_t number) const { return SplitMix64(*dropout_seed, number); }
};

/// The pieces of a kind of layer, of which the runners (Conv::Forward, TileLayer) make its
/// computation: rows of sources are projected one by one, reduced for each target, and turned into
/// the target's output together with its own row.
struct ConvPieces {
  ReducePiece reduce;
  bool projects = false;         ///< Project is not the identity
  std::int64_t width = 0;        ///< columns of a reduced row
  bool update_reads_own = true;  ///< Update reads UpdateRows::own
  bool reads_first = false;      ///< Update reads UpdateRows::first

  bool attends() const { return reduce.by == Reduction::kAttention; }

  /// Columns of the scores of a source (Conv::SourceScores).
  std::int64_t score_columns() const {
    return attends() && reduce.attention.score == AttendScore::kAdditive ? reduce.attention.heads
                                                                         : 0;
  }

  /// Columns of what a target asks (Conv::Query).
  std::int64_t query_columns() const {
    if (!attends()) return 0;
    return score_columns() > 0 ? score_columns() : width;
  }
};

/// The rows from which targets are updated. In layerwise inference these are tiles of kDenseRows
/// rows, and `both` is [own | reduced] in one matrix.
struct UpdateRows {
  LayerRows own;          ///< of the layer's input
  torch::Tensor reduced;  ///< [targets, ConvPieces::width]
  torch::Tensor first;    ///< [targets, hidden], of the network's first hidden rows
  torch::Tensor both;     ///< undefined in training

  /// Whether `reduced` [targets, out] is that of rows which were multiplied by
  /// Conv::ReducedWeight.
  bool multiplied = false;
};

/// One message-passing layer of some kind. A kind implements the pieces; whoever has a faster way
/// through all of them overrides Forward, or through those of attention Attended.
/// Threads: const functions may run on many threads at once, Forward excepted, which takes the
/// compute threads; its bits are the same for any number of them.
class Conv {
 public:
  /// `number`: ConvShape::number.
  explicit Conv(std::uint32_t number) : number_(number) {}
  virtual ~Conv() = default;
  Conv(const Conv&) = delete;
  Conv& operator=(const Conv&) = delete;

  virtual ConvPieces pieces() const = 0;

  /// Calls visit for every weight, always in the same order.
  virtual void VisitWeights(const WeightVisitor& visit) = 0;

  /// Projects rows of sources: [n, in] -> [n, width]. Each row depends on itself alone.
  virtual torch::Tensor Project(const LayerRows& rows, const RunMode& mode) const;

  // Attention only (cache/kernels/attention_kernels.h):

  /// Computes for each source the scalar of each head that its scores are made of, if the score is
  /// additive: projected [n, width] -> [n, heads].
  virtual torch::Tensor SourceScores(const torch::Tensor& projected) const;

  /// Computes what targets ask of their sources: rows of the layer's input, and the same projected
  /// -> [n, ConvPieces::query_columns()].
  virtual torch::Tensor Query(const LayerRows& own, const torch::Tensor& projected) const;

  /// The vectors of scores that are additive-v2: [heads, width of a head].
  virtual torch::Tensor ScoreVectors() const { return {}; }

  /// The weight [out, width] by which Update multiplies reduced rows before it does anything else
  /// with them, so that rows may as well be multiplied before they are summed; or undefined.
  virtual torch::Tensor ReducedWeight() const { return {}; }

  /// Computes the outputs of targets, [n, out]. A row depends on that target's rows alone, but for
  /// statistics of a batch while training.
  virtual torch::Tensor Update(const UpdateRows& rows, const RunMode& mode) const = 0;

  /// Computes x [sources, in] -> [targets, out] with gradients, through `activation`; x may have
  /// `place` if no gradient of it is wanted. `first`: as UpdateRows, or undefined.
  virtual torch::Tensor Forward(const LayerRows& x, const LayerGraph& graph,
                                const torch::Tensor& first, const Activation& activation,
                                const RunMode& mode) const;

  /// Projects and reduces by attention: [targets, width], with gradients.
  virtual torch::Tensor Attended(const LayerRows& x, const LayerGraph& graph,
                                 const RunMode& mode) const;

  /// Numbers that a training step keeps for each target, besides the rows that it reads.
  virtual std::uint64_t TargetNumbers() const;

  /// Numbers that it keeps for each source, if rows are projected.
  virtual std::uint64_t SourceNumbers() const;

  /// Prepares what Update needs many times. Called once before a run without gradients.
  virtual void Freeze() {}

  /// The shape of its attention, whose weights are dropped in training.
  AttentionShape ShapeOfAttention(const RunMode& mode) const;

 protected:
  std::uint32_t number() const { return number_; }

 private:
  const std::uint32_t number_;
};

/// The shape of one layer.
struct ConvShape {
  std::uint32_t number = 0;  ///< from 0
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t first = 0;  ///< columns of UpdateRows::first
  bool is_output = false;  ///< the last layer of a network without a head
};

/// A kind of layer: its description, with the options that it adds to those of every network, and
/// its maker. Make is called with checked options. Errors of Make: kInvalidArgument, a shape that
/// the kind does not have.
struct ConvKind {
  ModelInfo info;
  /// defaults of options of every network that differ for this kind
  std::map<std::string, std::string> defaults = {};
  Result<std::shared_ptr<Conv>> (*make)(const ConvShape& shape, const ModelOptions& options);
};

}  // namespace rhizome::inline internal
