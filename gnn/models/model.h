#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/feed/minibatch_sampler.h"
#include "cache/job/safetensors.h"
#include "gnn/models/inputs.h"
#include "gnn/models/layer.h"
#include "gnn/models/model_shape.h"
#include "gnn/ops/torch.h"
#include "rhizome/status.h"

namespace rhizome {
struct Minibatch;
}  // namespace rhizome

namespace rhizome {
inline namespace internal {

/// Returns the number of weights of a network. Errors: see Model::Create.
Result<std::uint64_t> CountWeights(const ModelShape& shape);

/// A network and its weights, in the shape of a ModelShape: layers (layer.h), and a head that
/// computes scores from the last layer's output, the embedding. With inputs by type, an input layer
/// (inputs.h) computes the rows that the first layer reads.
///
/// In training, draw 0 of RunMode is the dropout of the head's inputs, and draw k the dropout of
/// the inputs of layer k.
/// Threads: const functions may run concurrently (libtorch's gradient mode is per thread), except
/// where noted.
class Model {
 public:
  /// Creates a model with initial weights (Glorot uniform; biases zero), which depend only on
  /// `seed`.
  /// Errors: kInvalidArgument, see CheckShape; a kind or an option is unknown or does not fit.
  static Result<Model> Create(const ModelShape& shape, std::uint64_t seed);

  friend Result<std::uint64_t> CountWeights(const ModelShape& shape);

  /// Converts a model from and to the tensors of a model file. Errors: kCorruption, the description
  /// is missing, or a tensor is missing, unexpected or of a wrong shape; kUnsupported, see
  /// DecodeModelShape.
  static Result<Model> FromFile(const TensorFile& file);
  TensorFile ToFile() const;

  const ModelShape& shape() const { return shape_; }

  /// Adds the weights of a decoder of links, which are trained and stored with the network. Their
  /// names, such as "relations", have the prefix kDecoderPrefix in the model file. Weights of the
  /// same name are replaced.
  void SetDecoder(const std::map<std::string, torch::Tensor>& weights);

  /// Returns a weight of the decoder by its name without prefix; it requires gradients. Aborts the
  /// process if there is none.
  const torch::Tensor& DecoderWeight(const std::string& name) const;
  bool has_decoder() const { return !decoder_->empty(); }

  /// Returns the spec with all options, including those with default values.
  ModelSpec FullSpec() const;

  /// Returns the input layer; null without inputs by type.
  const InputLayer* inputs() const { return inputs_ ? &*inputs_ : nullptr; }

  /// Sets the graph whose vertices follow, by the names of its vertex types. By default the shape's
  /// types are used. Errors: kUnsupported, the model does not have one of them; the message names
  /// it.
  Status SetTypes(const std::vector<std::string>& vertex_types);

  std::uint32_t layers() const { return static_cast<std::uint32_t>(layers_.size()); }
  const Layer& layer(std::uint32_t number) const { return layers_[number]; }

  /// Returns the number of columns of the embedding of a vertex.
  std::int64_t embedding_width() const { return layers_.back().raw_out(); }

  /// Sets the data that minibatches must carry for this model: edges, degrees, vertex types and
  /// edge weights. Edge weights are only carried if `sampling` requests them.
  void FitSampling(MinibatchSamplerOptions& sampling) const;

  /// Maps the edge types of a graph to the relations of the model, for a typed kind. Minibatches of
  /// this graph then refer to its types. `by_side`: whether both directions are walked and are
  /// not the same (SamplerOptions::types_by_side). `fanouts`: SamplerOptions::typed_fanouts; types
  /// that no hop follows need no weights. Errors: kUnsupported, an edge type or a direction for
  /// which the model has no weights.
  Status FitRelations(const std::vector<std::string>& edge_types, bool by_side,
                      const std::vector<std::vector<std::int64_t>>& fanouts = {});

  /// Returns whether the kind has weights for each edge type.
  bool typed() const { return layers_.front().pieces().groups; }

  /// Returns whether the kind has weights for each vertex type.
  bool by_vertex_type() const { return layers_.front().pieces().by_vertex_type; }

  /// Returns the relation of each type of the graph; empty: it has the same number.
  const std::vector<TypeId>& relations() const { return relation_of_; }

  /// Returns the number of the model for a vertex type of the graph, for kinds with weights for
  /// each vertex type (SetTypes).
  TypeId NumberOfType(TypeId of_graph) const {
    return type_of_.empty() ? of_graph : type_of_[of_graph];
  }

  /// Returns the number of edges over which a change of the graph affects an embedding.
  std::uint32_t hops() const;

  /// Computes the scores of embeddings: [n, embedding_width()] -> [n, classes].
  torch::Tensor Head(const torch::Tensor& embeddings) const;

  /// Computes the same without gradients, on the calling thread, with the same bits.
  torch::Tensor HeadOfTile(const torch::Tensor& embeddings) const;

  /// Returns one graph for each layer, the first layer's first. Layer k computes the vertices that
  /// the layers above it need.
  std::vector<LayerGraph> MakeGraphs(const Minibatch& minibatch) const;

  /// Returns the features of a minibatch without a copy. With inputs by type there are none:
  /// FirstRows reads Minibatch::inputs.
  LayerRows Features(const Minibatch& minibatch) const;

  /// Returns the rows that the first layer reads: `features`, which come from Features of the same
  /// minibatch; with inputs by type the result of the input layer. The minibatch must outlive the
  /// backward pass. Uses the compute threads.
  /// `learned`: as InputLayer::RowsOf.
  LayerRows FirstRows(const Minibatch& minibatch, const LayerRows& features, const RunMode& mode,
                      std::vector<LearnedTable>* learned = nullptr) const;

  /// Computes the embeddings of a minibatch's seeds: [seeds, embedding_width()]. `first` come from
  /// FirstRows and `graphs` from MakeGraphs of the same minibatch; they must outlive the backward
  /// pass. Rows, graphs and weights must be on one device. Uses the compute threads.
  torch::Tensor Embed(const LayerRows& first, const std::vector<LayerGraph>& graphs,
                      const RunMode& mode) const;

  /// Computes the scores of a minibatch's seeds: [seeds, classes]. Same contract as Embed.
  torch::Tensor Scores(const LayerRows& first, const std::vector<LayerGraph>& graphs,
                       const RunMode& mode) const;
  torch::Tensor Scores(const Minibatch& minibatch, const std::vector<LayerGraph>& graphs,
                       const RunMode& mode) const {
    return Scores(FirstRows(minibatch, Features(minibatch), mode), graphs, mode);
  }

  /// Computes the scores of embeddings with gradients, and in training with dropout: [n,
  /// embedding_width()] -> [n, classes].
  torch::Tensor ScoresOf(const torch::Tensor& embeddings, const RunMode& mode) const;

  /// Returns the trained weights of the head, or of a layer, in a fixed order.
  std::vector<torch::Tensor> HeadParameters() const;
  std::vector<torch::Tensor> LayerParameters(std::uint32_t number) const;

  /// Returns all trained weights, in a fixed order; they require gradients.
  std::vector<torch::Tensor> Parameters() const;

  /// Returns their names in a model file, in the same order.
  std::vector<std::string> ParameterNames() const;

  /// Returns the tensors that are not trained, in a fixed order: running statistics of batch norms,
  /// and fixed settings such as GIN's eps.
  std::vector<torch::Tensor> Statistics() const;

  /// Moves all tensors to a device. Parameters() returns other tensors afterwards.
  void MoveTo(const torch::Device& place);

  /// Copies all tensors of the model file to the host, and restores such a copy.
  std::vector<torch::Tensor> CopyWeights() const;
  void RestoreWeights(const std::vector<torch::Tensor>& weights);

  /// Returns the floats that a training step on a minibatch keeps for all layers together, besides
  /// the features.
  std::uint64_t StepNumbers(const Minibatch& minibatch) const;

 private:
  Model() = default;
  static Result<Model> Build(const ModelShape& shape);
  /// Calls visit for every tensor.
  void VisitWeights(const WeightVisitor& visit) const;
  void VisitHead(const WeightVisitor& visit) const;

  /// Returns the lists of a minibatch grouped by relation.
  std::shared_ptr<const GroupedCsr> Grouped(const Minibatch& minibatch) const;

  /// Returns the vertex type of each row of a minibatch, as the model numbers types; empty: all
  /// have type 0.
  std::vector<TypeId> TypesOf(const Minibatch& minibatch) const;

  struct HeadWeights {
    DenseWeights hidden;  // for an MLP
    DenseWeights scores;
  };

  ModelShape shape_;
  double input_dropout_ = 0;
  std::optional<InputLayer> inputs_;
  HeadKind head_ = HeadKind::kLinear;
  bool head_drops_ = true;
  std::vector<Layer> layers_;
  std::vector<TypeId> relation_of_;  // by type of the graph; empty: the same numbers
  std::vector<TypeId> type_of_;      // likewise, vertex types; only if by_vertex_type()
  std::shared_ptr<HeadWeights> head_weights_ = std::make_shared<HeadWeights>();
  // By name in the model file.
  std::shared_ptr<std::map<std::string, torch::Tensor>> decoder_ =
      std::make_shared<std::map<std::string, torch::Tensor>>();
};

}  // namespace internal
}  // namespace rhizome
