#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/models/conv.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// The weights of a linear layer, x W^T + b.
struct DenseWeights {
  torch::Tensor weight;  ///< [out, in]
  torch::Tensor bias;    ///< [out]

  /// Visits "<name>.weight" and "<name>.bias".
  void Visit(const std::string& name, std::int64_t in, std::int64_t out,
             const WeightVisitor& visit);

  /// Applies the layer with gradients, on the compute threads: [n, in] -> [n, out].
  torch::Tensor Of(const LayerRows& rows) const { return Linear(rows, weight) + bias; }
};

enum class Normalization : std::uint8_t { kNone, kLayer, kBatch };

struct NormWeights;

/// The batch norms of a layer in a run over some rows of a graph, with the statistics of all rows.
/// Norms are numbered in the order in which rows pass through them.
struct GraphNorms {
  struct Statistics {
    torch::Tensor mean, variance;  ///< [width]; variance of the population
  };

  /// Statistics of the first norms. A norm without statistics leaves its rows unchanged: such a run
  /// collects the inputs of the norm.
  std::vector<Statistics> known = {};

  /// The norms that the rows have passed through, and the input of each, [n, width].
  std::vector<const NormWeights*> norms = {};
  std::vector<torch::Tensor> given = {};
};

/// The weights of a layer norm or batch norm of rows, with the constants of libtorch's modules. A
/// batch norm updates running statistics in training and uses them in evaluation.
/// Source: Ba et al., Layer Normalization (2016); Ioffe and Szegedy, Batch Normalization (ICML
/// 2015).
struct NormWeights {
  torch::Tensor weight, bias;    ///< [width]
  torch::Tensor mean, variance;  ///< [width], for batch norm

  /// Visits "<name>.weight" and "<name>.bias", and for batch norm "<name>.mean" and
  /// "<name>.variance".
  void Visit(Normalization kind, const std::string& name, std::int64_t width,
             const WeightVisitor& visit);

  /// Normalises rows, with gradients: [n, width] -> [n, width]. A single row has no variance. For a
  /// single row, a batch norm uses its running statistics, even in training, and does not change
  /// them.
  torch::Tensor Of(const torch::Tensor& x, const RunMode& mode) const;

  /// Moves the running statistics towards the statistics of a graph of `rows` rows (at least 2), as
  /// one training step over all rows would.
  void Keep(const GraphNorms::Statistics& statistics, std::int64_t rows) const;
};

}  // namespace internal
}  // namespace rhizome
