#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/gnn/conv.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

/// The weights of a linear layer, x W^T + b.
struct DenseWeights {
  torch::Tensor weight;  ///< [out, in]
  torch::Tensor bias;    ///< [out]

  /// Visits "<name>.weight" and "<name>.bias".
  void Visit(const std::string& name, std::int64_t in, std::int64_t out,
             const WeightVisitor& visit);

  /// Computes it with gradients, on the compute threads: [n, in] -> [n, out].
  torch::Tensor Of(const LayerRows& rows) const { return Linear(rows, weight) + bias; }
};

enum class Normalization : std::uint8_t { kNone, kLayer, kBatch };

struct NormWeights;

/// The batch norms of a layer in a run over some rows of a graph, if they are to have the
/// statistics of all rows. The norms are numbered in the order in which rows pass them.
struct GraphNorms {
  struct Statistics {
    torch::Tensor mean, variance;  ///< [width], of the population
  };

  /// Statistics of the first norms. Rows pass a norm without statistics unchanged: such a run is
  /// made to collect them.
  std::vector<Statistics> known = {};

  /// The norms that the rows have passed, and what each was given, [n, width].
  std::vector<const NormWeights*> norms = {};
  std::vector<torch::Tensor> given = {};
};

/// The weights of a layer or batch norm of rows, with the constants of libtorch's modules. A batch
/// norm keeps running statistics while training, and uses them otherwise.
/// Source: Ba et al., Layer Normalization (2016); Ioffe and Szegedy, Batch Normalization (ICML
/// 2015).
struct NormWeights {
  torch::Tensor weight, bias;    ///< [width]
  torch::Tensor mean, variance;  ///< [width], of batch norm

  /// Visits "<name>.weight", "<name>.bias" and, of batch norm, "<name>.mean" and "<name>.variance".
  void Visit(Normalization kind, const std::string& name, std::int64_t width,
             const WeightVisitor& visit);

  /// Computes it with gradients: [n, width] -> [n, width]. A single row has no variance: a batch
  /// norm uses its running statistics for it, also while training, and keeps them as they are.
  torch::Tensor Of(const torch::Tensor& x, const RunMode& mode) const;

  /// Moves the running statistics towards those of a graph of `rows` rows, at least 2, as a run
  /// over all of them at once does.
  void Keep(const GraphNorms::Statistics& statistics, std::int64_t rows) const;
};

}  // namespace rhizome::inline internal
