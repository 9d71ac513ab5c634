#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/cache/safetensors.h"
#include "rhizome/gnn/conv_layer.h"
#include "rhizome/gnn/model_shape.h"
#include "rhizome/storage/result.h"

namespace rhizome {
struct Minibatch;
}  // namespace rhizome

namespace rhizome::inline internal {

/// A network with the shape of a ModelShape, and its weights.
/// Threads: const functions may run on many threads at once (libtorch's gradient mode is per
/// thread).
class Model {
 public:
  /// Creates a model with fresh weights (Glorot uniform; biases zero), which depend on `seed`
  /// alone.
  /// Errors: kInvalidArgument, see CheckShape.
  static Result<Model> Create(const ModelShape& shape, std::uint64_t seed);

  /// Reads and writes the model as tensors. Errors: kCorruption, no description, or a tensor that
  /// is missing, superfluous or of a wrong shape; kUnsupported, see DecodeModelShape.
  static Result<Model> FromFile(const TensorFile& file);
  TensorFile ToFile() const;

  const ModelShape& shape() const { return shape_; }

  const ConvLayer& layer(std::uint32_t layer) const { return layers_[layer]; }

  /// Computes the scores of embeddings: [n, hidden] -> [n, classes].
  torch::Tensor Head(const torch::Tensor& embeddings) const;

  /// Does the same without a gradient, on the calling thread, for kDenseRows rows; the bits of a
  /// row depend on that row alone.
  torch::Tensor HeadOfTile(const torch::Tensor& embeddings) const;

  /// Computes the embeddings of a minibatch's seeds: [seeds, hidden]. `graphs` come from MakeGraphs
  /// of the same minibatch and must outlive the backward pass. With `dropout_seed` the inputs of
  /// every layer but the first are dropped out by that seed; null (evaluation) drops nothing.
  torch::Tensor Embed(const Minibatch& minibatch, const std::vector<LayerGraph>& graphs,
                      const std::uint64_t* dropout_seed) const;

  /// Returns one graph for each layer, the first layer's first. Layer k computes the vertices that
  /// the layers above it need.
  std::vector<LayerGraph> MakeGraphs(const Minibatch& minibatch) const;

  /// Computes Head with its inputs dropped out, as Embed drops those of the layers.
  torch::Tensor HeadWithDropout(const torch::Tensor& embeddings, std::uint64_t dropout_seed) const;

  /// Returns all weights, in a fixed order; they require gradients.
  std::vector<torch::Tensor> Parameters() const;

  /// Returns their names in a model file, in the same order.
  std::vector<std::string> ParameterNames() const;

  /// Copies the weights, and restores such a copy.
  std::vector<torch::Tensor> CopyWeights() const;
  void RestoreWeights(const std::vector<torch::Tensor>& weights);

 private:
  Model() = default;
  /// Calls visit(name, tensor, shape) for every weight.
  template <typename Visit>
  void VisitWeights(Visit visit);

  ModelShape shape_;
  std::vector<ConvLayer> layers_;
  torch::Tensor head_weight_;  // [classes, hidden]
  torch::Tensor head_bias_;    // [classes]
};

}  // namespace rhizome::inline internal
