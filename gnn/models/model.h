#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/cache/safetensors.h"
#include "rhizome/gnn/layer.h"
#include "rhizome/gnn/model_shape.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/storage/result.h"

namespace rhizome {
struct Minibatch;
}  // namespace rhizome

namespace rhizome::inline internal {

/// A network with the shape of a ModelShape, and its weights: layers (layer.h), and a head that
/// makes scores of the last layer's output, the embedding.
///
/// While training, draw 0 of RunMode drops out the inputs of the head, and draw k those of layer k.
/// Threads: const functions may run on many threads at once (libtorch's gradient mode is per
/// thread), but for those that say otherwise.
class Model {
 public:
  /// Creates a model with fresh weights (Glorot uniform; biases zero), which depend on `seed`
  /// alone.
  /// Errors: kInvalidArgument, see CheckShape; a kind or an option that does not exist or fit.
  static Result<Model> Create(const ModelShape& shape, std::uint64_t seed);

  /// Reads and writes the model as tensors. Errors: kCorruption, no description, or a tensor that
  /// is missing, superfluous or of a wrong shape; kUnsupported, see DecodeModelShape.
  static Result<Model> FromFile(const TensorFile& file);
  TensorFile ToFile() const;

  const ModelShape& shape() const { return shape_; }

  /// Returns its spec with all options, those that were not given too.
  ModelSpec FullSpec() const;

  std::uint32_t layers() const { return static_cast<std::uint32_t>(layers_.size()); }
  const Layer& layer(std::uint32_t number) const { return layers_[number]; }

  /// Columns of the embedding of a vertex.
  std::int64_t embedding_width() const { return layers_.back().raw_out(); }

  /// Sets what minibatches have to carry for this model, of what a job would have them carry.
  void FitSampling(MinibatchSamplerOptions& sampling) const;

  /// Number of edges over which a change of the graph is felt.
  std::uint32_t hops() const;

  /// Computes the scores of embeddings: [n, embedding_width()] -> [n, classes].
  torch::Tensor Head(const torch::Tensor& embeddings) const;

  /// Does the same without a gradient, on the calling thread, with the same bits.
  torch::Tensor HeadOfTile(const torch::Tensor& embeddings) const;

  /// Returns one graph for each layer, the first layer's first. Layer k computes the vertices that
  /// the layers above it need.
  std::vector<LayerGraph> MakeGraphs(const Minibatch& minibatch) const;

  /// Returns the features of a minibatch, as Embed takes them, where they are held.
  LayerRows Features(const Minibatch& minibatch) const;

  /// Computes the embeddings of a minibatch's seeds: [seeds, embedding_width()]. `graphs` come from
  /// MakeGraphs of the same minibatch and must outlive the backward pass; features, graphs and
  /// weights are on one device. Takes the compute threads.
  torch::Tensor Embed(const LayerRows& features, const std::vector<LayerGraph>& graphs,
                      const RunMode& mode) const;

  /// Computes the scores of a minibatch's seeds: [seeds, classes]. As Embed.
  torch::Tensor Scores(const LayerRows& features, const std::vector<LayerGraph>& graphs,
                       const RunMode& mode) const;
  torch::Tensor Scores(const Minibatch& minibatch, const std::vector<LayerGraph>& graphs,
                       const RunMode& mode) const {
    return Scores(Features(minibatch), graphs, mode);
  }

  /// Computes the scores of embeddings while training or not: [n, embedding_width()] -> [n,
  /// classes], with gradients.
  torch::Tensor ScoresOf(const torch::Tensor& embeddings, const RunMode& mode) const;

  /// Returns the weights of the head that are learnt, and those of a layer, in a fixed order.
  std::vector<torch::Tensor> HeadParameters() const;
  std::vector<torch::Tensor> LayerParameters(std::uint32_t number) const;

  /// Returns the weights that are learnt, in a fixed order; they require gradients.
  std::vector<torch::Tensor> Parameters() const;

  /// Returns their names in a model file, in the same order.
  std::vector<std::string> ParameterNames() const;

  /// Returns the weights that are not learnt, in a fixed order: running statistics of batch norms.
  std::vector<torch::Tensor> Statistics() const;

  /// Moves all tensors to another device. Parameters() are others afterwards.
  void MoveTo(const torch::Device& place);

  /// Copies all tensors of the model file to the host, and restores such a copy.
  std::vector<torch::Tensor> CopyWeights() const;
  void RestoreWeights(const std::vector<torch::Tensor>& weights);

  /// Numbers that a training step on a minibatch keeps for all layers together, besides the
  /// features.
  std::uint64_t StepNumbers(const Minibatch& minibatch) const;

 private:
  Model() = default;
  static Result<Model> Build(const ModelShape& shape);
  /// Calls visit for every tensor.
  void VisitWeights(const WeightVisitor& visit) const;
  void VisitHead(const WeightVisitor& visit) const;

  struct HeadWeights {
    DenseWeights hidden;  // of an MLP
    DenseWeights scores;
  };

  ModelShape shape_;
  double input_dropout_ = 0;
  HeadKind head_ = HeadKind::kLinear;
  bool head_drops_ = true;
  std::vector<Layer> layers_;
  std::shared_ptr<HeadWeights> head_weights_ = std::make_shared<HeadWeights>();
};

}  // namespace rhizome::inline internal
