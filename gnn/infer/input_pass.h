#pragma once

#include "cache/blocks/layer_output.h"
#include "cache/blocks/row_order.h"
#include "gnn/infer/layer_sizes.h"
#include "gnn/models/model.h"
#include "rhizome/graph.h"
#include "rhizome/infer_options.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The pass before the first layer of a network with inputs by type: reads the arrays in row order,
/// computes the input layer (gnn/models/inputs.h) and writes the array that the first layer reads.
/// Arrays are read only where they have rows of their types, each chunk once.
/// Memory: LayerSizes::InputBytes.
class InputPass {
 public:
  /// `order`: the rows to compute, ascending; as stored: all rows. All arguments are borrowed.
  InputPass(const GraphSnapshot& graph, const Model& model, const LayerwiseOptions& options,
            const RowOrder& order)
      : graph_(graph), model_(model), options_(options), order_(order) {}

  /// Computes all chunks of `output` that are not done. The bytes do not depend on threads, memory
  /// or chunks. Errors: any error of the arrays; kInterrupted.
  Result<InferLayerCosts> Run(LayerOutput& output, const JobControl& control) const;

 private:
  const GraphSnapshot& graph_;
  const Model& model_;
  const LayerwiseOptions& options_;
  const RowOrder& order_;
};

}  // namespace internal
}  // namespace rhizome
