#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/feed/task_labels.h"
#include "cache/feed/vertex_score_sink.h"
#include "gnn/full_graph/full_arrays.h"
#include "gnn/models/model.h"
#include "gnn/models/weights.h"
#include "gnn/ops/torch.h"
#include "gnn/passes/graph_pass.h"
#include "gnn/train/task_loss.h"

namespace rhizome {
inline namespace internal {

/// Checks that a network can be trained on the full graph of `rows` vertices: apart from
/// aggregation, its steps must work row by row or depend on other rows only through batch norms.
/// Errors: kInvalidArgument, naming what is not supported, and an alternative.
Status CheckFullGraph(const Model& model, std::uint64_t rows);

/// Divisors that turn the sums of losses over the training and the validation set into means.
struct SetWeights {
  double train = 1;
  double valid = 1;
};
SetWeights WeightsOfSets(const Labels& labels, const TaskLoss& loss);

/// Visitor over the passes of an epoch. It either runs a pass, or records it for planning and
/// returns empty sums.
using PassUser = std::function<Result<TileSums>(const GraphPass& pass)>;

/// Computes loss and gradients of a network over all edges of a graph, pass by pass: forward, layer
/// by layer, then backward. Layer k has these scratch arrays:
///   prepared-k        the rows that are aggregated, if they differ from the previous layer's rows
///   sums-k            the aggregated rows, for the backward pass unless it recomputes them.
///                     For maxima also the rows that attain them, to which gradients are passed;
///                     for attention see GatherHeads
///   hidden-k          the layer's rows
///   gradient-k        the gradient of hidden-k, if batch norms need several passes over it
///   sums-gradient-k   the gradient of sums-k, aggregated over the reverse lists
///   own-gradient-k    the gradient of the targets' own rows as the layer reads them
/// Values between these arrays are recomputed tile by tile where their gradients are needed
/// (libtorch's autograd on a tile), so that only these arrays grow with the graph.
///
/// The forward pass of the last layer also computes the loss and the gradients of its sums. The
/// pass that aggregates the gradients of layer k also computes the gradients of layer k - 1.
///
/// Source: ROC (Jia et al., MLSys 2020), sections 3 and 5: training on full graphs with GPU memory
/// as a cache of host memory. Here host memory is a cache of arrays on disk.
/// Threads: one at a time; works on the compute threads.
/// Ownership: borrows all arguments.
class FullNetwork {
 public:
  /// `arrays`: the arrays of ArraysOf. All sums are stored until SetRecomputed is called.
  FullNetwork(const Model& model, const Labels& labels, const TaskLoss& loss,
              const SetWeights& weights, const FullArrays& arrays);

  /// Sets the layers whose sums the backward pass recomputes instead of reading them from scratch.
  /// Only layers for which CanRecomputeSums is true.
  void SetRecomputed(std::vector<bool> layers) { recomputed_ = std::move(layers); }

  /// Computes the mean loss over the training set, sets the gradients of the weights, and updates
  /// the running statistics of batch norms. `seed`: of dropout. `sink`: receives the scores of the
  /// training set, unless it is null. Errors: errors of `use`.
  Result<double> Learn(std::uint64_t seed, VertexScoreSink* sink, const PassUser& use);

  /// Computes the scores of all vertices without dropout, passes them to `sink`, and returns the
  /// mean loss over the validation set, 0 if that is empty. Errors: errors of `use`.
  Result<double> Evaluate(VertexScoreSink& sink, const PassUser& use);

 private:
  /// How rows are computed: for training, with a dropout seed, or for evaluation.
  struct Mode {
    bool learns = false;
    std::uint64_t seed = 0;
    RunMode At(const PassTile& tile, GraphNorms* norms = nullptr) const;
  };

  using TileTensor = std::function<torch::Tensor(const PassTile&)>;

  /// A pass that yields, for each tile, the inputs of a layer and the gradient of the layer's rows.
  /// The caller adds the body that computes with them.
  struct Incoming {
    GraphPass pass;
    /// Null: computed from the loss.
    std::function<torch::Tensor(const PassTile&, TileSums&)> gradient;
    TileTensor sums;
    TileTensor raw;  ///< null: the layer does not read targets' own rows
  };

  // Arrays and inputs of a layer.
  ScratchArray* Array(const char* what, std::uint32_t layer) const;
  PassInput RowsBefore(std::uint32_t layer) const;
  PassInput GatheredBy(std::uint32_t layer) const;

  const Layer& At(std::uint32_t layer) const { return model_.layer(layer); }
  bool IsLast(std::uint32_t layer) const { return layer + 1 == model_.layers(); }
  bool StoresSums(std::uint32_t layer) const {
    return arrays_.contains(NameOfArray(kSums, layer)) && !recomputed_[layer];
  }
  bool WantsSumsGradient(std::uint32_t layer) const {
    return internal::WantsSumsGradient(model_, layer);
  }
  bool Attends(std::uint32_t layer) const { return At(layer).pieces().attends(); }
  bool AsksWhole(std::uint32_t layer) const {  // GATv2: a query is a whole row
    return Attends(layer) && HeadsOf(At(layer)).second();
  }
  bool JoinsOwn(std::uint32_t layer) const {  // its sum includes the target's own row
    return At(layer).pieces().reduce.own_joins && !Attends(layer);
  }
  AggregationKind WayOf(std::uint32_t layer, bool back) const;
  bool KeepsWinners(std::uint32_t layer) const {
    return TakesMax(At(layer)) && WantsSumsGradient(layer);
  }
  bool WantsOwnGradient(std::uint32_t layer) const {
    return layer > 0 && At(layer).finish_reads_raw();
  }

  // Steps of an epoch.
  Status PrepareLayer(std::uint32_t layer, const Mode& mode, const PassUser& use);
  Status ForwardLayer(std::uint32_t layer, const Mode& mode, const PassUser& use);
  Status CollectStatistics(std::uint32_t layer, const Mode& mode, const PassUser& use);
  Status BackwardNorms(std::uint32_t layer, Incoming& incoming, const Mode& mode,
                       const PassUser& use);
  Status BackwardLayer(std::uint32_t layer, Incoming incoming, const Mode& mode,
                       const PassUser& use);
  Status BackwardPrepared(const Mode& mode, const PassUser& use);

  // Functions that create passes.
  torch::Tensor SumsToStore(std::uint32_t layer, const torch::Tensor& gathered) const {
    return gathered.narrow(1, 0, SumsColumns(model_, layer));
  }
  GraphPass GatherPass(std::uint32_t layer, const Mode& mode, std::string name) const;
  void AddGather(std::uint32_t layer, const Mode& mode, GraphPass& pass) const;
  GraphPass GradientPass(std::uint32_t layer, const Mode& mode, std::string name) const;
  GatherHeads HeadsIn(std::uint32_t layer, const Mode& mode) const;
  Incoming FromLoss(std::uint32_t layer, const Mode& mode) const;
  Incoming FromAbove(std::uint32_t layer, const Mode& mode) const;
  Incoming FromArrays(std::uint32_t layer, bool from_loss) const;
  const NormWeights* NormOf(std::uint32_t layer, std::size_t norm, const Mode& mode,
                            const Incoming& read) const;
  TileTensor RawOf(std::uint32_t layer, GraphPass& pass) const;

  // Computation of a tile.
  /// The rows of a layer in a tile (`out`), and the values from which they were computed.
  struct Work {
    torch::Tensor raw, sums, out;
    torch::Tensor winners;  // rows that attain the maxima, if gradients are wanted
    // Attention only: the aggregated rows [rows, GatherHeads::gathered] behind `sums`.
    torch::Tensor attended;
    GraphNorms norms;
  };

  /// Tensors of a tile, and the gradients of the loss with respect to them.
  struct Objective {
    std::vector<torch::Tensor> of, gradients;
  };

  Work Compute(std::uint32_t layer, const Mode& mode, const PassTile& tile,
               const Incoming& incoming) const;
  Objective Wanted(std::uint32_t layer, const Mode& mode, const PassTile& tile,
                   const Incoming& incoming, const Work& work, TileSums& sums) const;
  torch::Tensor GradientAbove(std::uint32_t layer, const Mode& mode, const PassTile& tile,
                              const TileTensor& own, const TileTensor& raw, TileSums& sums) const;
  torch::Tensor Prepare(std::uint32_t layer, const torch::Tensor& raw, const RunMode& mode) const;
  torch::Tensor Mean(std::uint32_t layer, const torch::Tensor& attended) const;
  Objective OfPrepared(std::uint32_t layer, const PassTile& tile,
                       const torch::Tensor& prepared) const;
  void PutSumsGradient(std::uint32_t layer, const Work& work, const torch::Tensor& gradient,
                       const torch::Tensor& prepared, torch::Tensor& output) const;
  std::vector<torch::Tensor> ParametersOf(std::uint32_t layer) const;
  std::vector<Row> Members(const PassTile& tile, Split set) const;
  std::uint64_t SummedBytes(std::uint32_t layer) const;
  std::size_t loss_sum() const { return parameters_.size(); }
  Status Use(const GraphPass& pass, const PassUser& use);

  const Model& model_;
  const Labels& labels_;
  const TaskLoss& task_loss_;
  const FullArrays& arrays_;
  const std::vector<torch::Tensor> parameters_;  // TileSums holds their gradients, then the loss
  std::vector<std::size_t> first_parameter_;     // [layers + 1] indices; the last is the head's
  const SetWeights weights_;

  /// A batch norm of a layer: its statistics and their gradients.
  struct Norm {
    GraphNorms::Statistics known;
    GraphNorms::Statistics gradient;  // undefined until computed
    const NormWeights* weights = nullptr;
  };
  std::vector<bool> recomputed_;          // [layers]
  std::vector<std::vector<Norm>> norms_;  // [layers] of the current epoch
  double loss_ = 0;                       // of the current epoch
  VertexScoreSink* sink_ = nullptr;       // of the current epoch
};

}  // namespace internal
}  // namespace rhizome
