#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/cache/task_labels.h"
#include "rhizome/cache/vertex_score_sink.h"
#include "rhizome/gnn/full_arrays.h"
#include "rhizome/gnn/graph_pass.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/task_loss.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/gnn/weights.h"

namespace rhizome::inline internal {

/// Checks that a network can be trained on the full graph: every step of it but the gathering works
/// row by row, or needs the statistics of batch norms between steps. Errors: kInvalidArgument,
/// saying what cannot, and what can.
Status CheckFullGraph(const Model& model, std::uint64_t rows);

/// The numbers by which the losses over sets are divided, to be means.
struct SetWeights {
  double train = 1;
  double valid = 1;
};
SetWeights WeightsOfSets(const Labels& labels, const TaskLoss& loss);

/// The use that is made of the passes of an epoch: they are run, or only counted, with sums of
/// nothing.
using PassUser = std::function<Result<TileSums>(const GraphPass& pass)>;

/// Computes loss and gradients of a network over all edges of a graph, pass by pass: forward, layer
/// by layer, and back. Of layer k there are, in scratch,
///   prepared-k        the rows that are gathered, if they are not those of the layer before
///   sums-k            the gathered sums, which the way back needs, unless it gathers them again;
///                     of maxima with the rows that attain them, to which gradients go back; of
///                     attention the parts of which GatherHeads tells
///   hidden-k          the layer's rows
///   gradient-k        the gradient of these, if batch norms need more than one pass over it
///   sums-gradient-k   the gradient of the sums, gathered over the lists of the other side
///   own-gradient-k    the gradient of what the layer reads of a target's own row.
/// What lies between them is computed again, tile by tile, where its gradients are wanted
/// (libtorch's autograd on a tile), so that nothing but these arrays grows with the graph.
///
/// The last layer's forward pass goes on with the loss and the gradients of its sums, and the pass
/// that gathers the gradients of layer k goes on with those of the layer before.
///
/// Source: ROC (Jia et al., MLSys 2020), sections 3 and 5: training on full graphs, with a GPU's
/// memory as a cache of the host's. Here the host's memory is a cache of arrays on disk.
/// Threads: one at a time; works on the compute threads.
/// Ownership: borrows all that it is given.
class FullNetwork {
 public:
  /// `arrays`: those of ArraysOf. All sums are stored.
  FullNetwork(const Model& model, const Labels& labels, const TaskLoss& loss,
              const SetWeights& weights, const FullArrays& arrays);

  /// Says which layers' sums are gathered again on the way back, instead of being stored: a subset
  /// of those of CanRecomputeSums.
  void SetRecomputed(std::vector<bool> layers) { recomputed_ = std::move(layers); }

  /// Computes the loss over the training set, a mean, and sets the gradients of the weights.
  /// `seed`: of dropout. `sink`, if not null, is given the scores of the training set. Running
  /// statistics of batch norms move on. Errors: those of `use`.
  Result<double> Learn(std::uint64_t seed, VertexScoreSink* sink, const PassUser& use);

  /// Computes the scores of the vertices of all sets without dropout, gives them to `sink`, and
  /// returns the loss over the validation set; 0 if that is empty. Errors: those of `use`.
  Result<double> Evaluate(VertexScoreSink& sink, const PassUser& use);

 private:
  /// How rows are computed: to learn, with a seed, or to evaluate.
  struct Mode {
    bool learns = false;
    std::uint64_t seed = 0;
    RunMode At(const PassTile& tile, GraphNorms* norms = nullptr) const;
  };

  using TileTensor = std::function<torch::Tensor(const PassTile&)>;

  /// A pass that knows, of each tile, the gradient of a layer's rows and what the layer computed
  /// them from. What is computed with these is still to be added.
  struct Incoming {
    GraphPass pass;
    std::function<torch::Tensor(const PassTile&, TileSums&)> gradient;  ///< null: that of the loss
    TileTensor sums;
    TileTensor raw;  ///< null: the layer reads no own rows
  };

  // The arrays of layer `layer`, and what it reads.
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
  bool AsksWhole(std::uint32_t layer) const {  // targets ask with whole rows
    return Attends(layer) && HeadsOf(At(layer)).second();
  }
  bool JoinsOwn(std::uint32_t layer) const {  // a sum, with the row of the target
    return At(layer).pieces().reduce.own_joins && !Attends(layer);
  }
  GatherBy WayOf(std::uint32_t layer, bool back) const;
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

  // Passes, or what they begin with.
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

  // Tiles.
  /// A layer's rows of a tile, and what they were computed from.
  struct Work {
    torch::Tensor raw, sums, out;
    torch::Tensor winners;  // of maxima whose gradients are wanted
    torch::Tensor
        attended;  // [rows, GatherHeads::gathered], of attention, of which `sums` are made
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
  const std::vector<torch::Tensor> parameters_;  // a pass sums their gradients, and the loss
  std::vector<std::size_t> first_parameter_;     // of each layer, then of the head
  const SetWeights weights_;

  /// A batch norm of a layer: its statistics, and the gradients of these.
  struct Norm {
    GraphNorms::Statistics known;
    GraphNorms::Statistics gradient;  // undefined: not yet
    const NormWeights* weights = nullptr;
  };
  std::vector<bool> recomputed_;          // [layers]
  std::vector<std::vector<Norm>> norms_;  // of each layer, of the epoch
  double loss_ = 0;                       // of the epoch
  VertexScoreSink* sink_ = nullptr;       // of the epoch
};

}  // namespace rhizome::inline internal
