#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gnn/models/model_options.h"
#include "gnn/ops/activation.h"
#include "gnn/ops/attention_ops.h"
#include "gnn/ops/block_products.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/layer_graph.h"
#include "gnn/ops/torch.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

/// A weight tensor of a network: its name in model files, shape and initial values.
struct WeightSpec {
  enum class Fill : std::uint8_t { kGlorot, kZeros, kOnes };
  std::string name;
  std::vector<std::int64_t> shape;
  Fill fill = Fill::kGlorot;
  bool trained = true;  ///< false: a statistic that training updates without a gradient
};
using WeightVisitor = std::function<void(const WeightSpec& spec, torch::Tensor& weight)>;

struct GraphNorms;

/// Mode in which a network runs: training, with a seed for all dropout, or evaluation.
struct RunMode {
  const std::uint64_t* dropout_seed = nullptr;  ///< null: evaluation, without dropout
  std::int64_t first_row = 0;   ///< number of the first row, for the draws of dropout
  GraphNorms* norms = nullptr;  ///< batch norms with statistics of more rows than are given
  Device* device = nullptr;     ///< device that holds rows and weights; null: the CPU
  bool training() const { return dropout_seed != nullptr; }

  /// Returns the seed of draw `number`. Draws with different numbers are independent.
  std::uint64_t Seed(std::uint64_t number) const { return SplitMix64(*dropout_seed, number); }
};

/// The pieces of a kind of layer. The runners (Conv::Forward, TileLayer) combine them: rows of
/// sources are projected one by one, reduced for each target, and turned into the target's output
/// together with the target's own row.
struct ConvPieces {
  ReducePiece reduce;
  bool projects = false;         ///< Project is not the identity
  std::int64_t width = 0;        ///< columns of a reduced row
  bool update_reads_own = true;  ///< Update reads UpdateRows::own
  bool reads_first = false;      ///< Update reads UpdateRows::first

  /// Whether the edges of a target are grouped by relation. Each group is then reduced to a row.
  bool groups = false;

  /// Whether layerwise inference, instead of grouping edges, multiplies rows of sources by the
  /// matrices of their edges' relations (Conv::Relate) before it reduces them. A target then keeps
  /// the state of one list, not of each group.
  bool relates = false;

  /// Whether there are weights for each vertex type: Forward reads LayerGraph::typed, the functions
  /// for layerwise inference read LayerRows::types. Such kinds have groups.
  bool by_vertex_type = false;

  bool attends() const { return reduce.by == Reduction::kAttention; }

  /// Number of columns of a projected row. The last `width` columns are reduced.
  std::int64_t source_columns() const {
    return attends() ? width * static_cast<std::int64_t>(AttendParts(reduce.attention.score))
                     : width;
  }

  /// Number of columns of a source's scores (Conv::SourceScores).
  std::int64_t score_columns() const {
    return attends() && reduce.attention.score == AttendScore::kAdditive ? reduce.attention.heads
                                                                         : 0;
  }

  /// Number of columns of the query of a target (Conv::Query).
  std::int64_t query_columns() const {
    if (!attends()) return 0;
    return score_columns() > 0 ? score_columns() : width;
  }
};

/// The rows from which targets are updated. In layerwise inference these are tiles of kDenseRows
/// rows, and `both` is [own | reduced] as one matrix.
struct UpdateRows {
  LayerRows own;          ///< own rows in the layer's input
  torch::Tensor reduced;  ///< [targets, ConvPieces::width], or [groups, width]
  torch::Tensor first;    ///< [targets, hidden], the network's first hidden rows
  torch::Tensor both;     ///< undefined in training

  /// Whether `reduced` [targets, out] was computed from rows that were already multiplied by
  /// Conv::ReducedWeight.
  bool multiplied = false;

  /// In layerwise inference, if edges are grouped; only group_begin and relation are set.
  GroupedLists groups = {};
};

/// A message-passing layer. A kind of layer implements the pieces. It may override Forward with a
/// faster path through all pieces, or Attended with a faster path through the pieces of attention.
/// Threads: const functions may run concurrently, except Forward, which uses the compute threads.
/// Its bits are the same for any number of threads.
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

  /// Projects rows of sources: [n, in] -> [n, ConvPieces::source_columns()]. Each row depends only
  /// on itself.
  virtual torch::Tensor Project(const LayerRows& rows, const RunMode& mode) const;

  // Attention only (cache/kernels/attention_kernels.h):

  /// Computes the term that each source contributes to its additive scores, one number per head:
  /// projected [n, width] -> [n, heads].
  virtual torch::Tensor SourceScores(const torch::Tensor& projected) const;

  /// Computes the queries of targets, [n, ConvPieces::query_columns()], from rows of the layer's
  /// input and the same rows projected; with ConvPieces::relates the latter are not given.
  virtual torch::Tensor Query(const LayerRows& own, const torch::Tensor& projected) const;

  /// Multiplies projected rows by the matrices of relations, with ConvPieces::relates. Pair n has
  /// the row row[n] and a relation, which is its class in `pairs`. Row i of `out` [pairs.size(),
  /// ConvPieces::source_columns()] is the product of pair pairs.rows[i]. Uses the compute threads.
  virtual void Relate(const LayerRows& projected, const RowsByClass& pairs,
                      std::span<const std::uint32_t> row, float* out) const;

  /// Returns the score vectors of kGatv2: [heads, width of a head].
  virtual torch::Tensor ScoreVectors() const { return {}; }

  /// Returns the weight [out, width] by which Update first multiplies reduced rows, so that rows
  /// may also be multiplied before they are summed; undefined if there is none.
  virtual torch::Tensor ReducedWeight() const { return {}; }

  /// Computes the outputs of targets, [n, out]. A row depends only on that target's rows, except
  /// for the statistics of a batch in training.
  virtual torch::Tensor Update(const UpdateRows& rows, const RunMode& mode) const = 0;

  /// Computes x [sources, in] -> [targets, out] with gradients, including `activation`. x may have
  /// `place` if its gradient is not needed. `first`: see UpdateRows, or undefined.
  virtual torch::Tensor Forward(const LayerRows& x, const LayerGraph& graph,
                                const torch::Tensor& first, const Activation& activation,
                                const RunMode& mode) const;

  /// Projects rows and reduces them by attention, with gradients: -> [targets, width].
  virtual torch::Tensor Attended(const LayerRows& x, const LayerGraph& graph,
                                 const RunMode& mode) const;

  /// Returns the floats that a training step keeps for each target, besides the rows that it reads.
  virtual std::uint64_t TargetNumbers() const;

  /// Returns the floats that a training step keeps for each group (ConvPieces::groups).
  virtual std::uint64_t GroupNumbers() const { return 0; }

  /// Returns the floats that a training step keeps for each source, if rows are projected.
  virtual std::uint64_t SourceNumbers() const;

  /// Prepares data that Update uses repeatedly. Called once before a run without gradients.
  virtual void Freeze() {}

  /// Returns the parameters of attention, in training with dropout of its weights.
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
  std::int64_t first = 0;         ///< columns of UpdateRows::first
  bool is_output = false;         ///< the last layer of a network without a head
  std::int64_t relations = 1;     ///< for typed kinds
  std::int64_t vertex_types = 1;  ///< for kinds with ConvPieces::by_vertex_type
};

/// A kind of layer: its description, with its own options, and its factory. `make` expects checked
/// options. Errors of `make`: kInvalidArgument, the kind does not support the shape.
struct ConvKind {
  ModelInfo info;
  /// Options of every network whose default is different for this kind.
  std::map<std::string, std::string> defaults = {};
  Result<std::shared_ptr<Conv>> (*make)(const ConvShape& shape, const ModelOptions& options);
};

}  // namespace internal
}  // namespace rhizome
