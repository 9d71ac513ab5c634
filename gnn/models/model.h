#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/safetensors.h"
#include "rhizome/gnn/conv_layer.h"
#include "rhizome/gnn/model_shape.h"
#include "rhizome/storage/result.h"

namespace rhizome {
struct Minibatch;
}  // namespace rhizome

namespace rhizome::inline internal {

/// A network of the form that ModelShape describes, and its weights.
/// Threads: const functions may run on many threads at once (libtorch's gradient mode is each
/// thread's own).
class Model {
 public:
  /// Fresh weights (Glorot uniform; biases zero) that depend on `seed` alone.
  /// Errors: kInvalidArgument, see CheckShape.
  static Result<Model> Create(const ModelShape& shape, std::uint64_t seed);

  /// Errors: kCorruption, no description, or a tensor missing, superfluous or of a wrong shape.
  static Result<Model> FromFile(const TensorFile& file);
  TensorFile ToFile() const;

  const ModelShape& shape() const { return shape_; }

  const ConvLayer& layer(std::uint32_t layer) const { return layers_[layer]; }

  /// Embeddings [n, hidden] -> scores [n, classes].
  torch::Tensor Head(const torch::Tensor& embeddings) const;

  /// The same without a gradient, on the calling thread, for kDenseRows rows: bits of a row that
  /// depend on that row alone.
  torch::Tensor HeadOfTile(const torch::Tensor& embeddings) const;

  /// The embeddings of a minibatch's seeds: [seeds, hidden]. `graphs` come from MakeGraphs of the
  /// same minibatch and must outlive the backward pass. With `dropout_seed`, drops out the inputs
  /// of every layer but the first as that seed says; without, nothing (evaluation).
  torch::Tensor Embed(const Minibatch& minibatch, const std::vector<LayerGraph>& graphs,
                      const std::uint64_t* dropout_seed) const;

  /// One graph a layer, the first layer's first: layer k computes the vertices that the layers
  /// above it need.
  std::vector<LayerGraph> MakeGraphs(const Minibatch& minibatch) const;

  /// Drops out the head's inputs as Embed does those of the layers.
  torch::Tensor HeadWithDropout(const torch::Tensor& embeddings, std::uint64_t dropout_seed) const;

  /// All weights, in a fixed order; they require gradients.
  std::vector<torch::Tensor> Parameters() const;

  /// A copy of the weights, and back.
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
