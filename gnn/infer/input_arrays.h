#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gnn/infer/layerwise_options.h"
#include "gnn/models/model.h"
#include "rhizome/graph.h"
#include "rhizome/manifest.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/status.h"
#include "rhizome/store.h"

namespace rhizome {
inline namespace internal {

/// Completes the arrays that the caller of a job gave for some vertex types by the arrays that the
/// model was trained on. Returns one for each type of the graph, in its order; empty if the model
/// has no inputs by type. Errors: kInvalidArgument, a type is unknown or given twice, the model has
/// no inputs by type but `given` has, or an array does not fit the model or the graph; kNotFound,
/// there is no such array.
Result<std::vector<FeatureInput>> InputsOfModel(const GraphSnapshot& graph, const Model& model,
                                                std::span<const FeatureInput> given);

/// Checks that arrays, one for each vertex type of the graph, fit the model and the graph. Errors:
/// kInvalidArgument, naming the type.
Status CheckInputs(const GraphSnapshot& graph, const Model& model,
                   std::span<const FeatureInput> inputs);

/// Returns the names of the arrays that a job reads as features, each once: the arrays of
/// `inputs`, or `features` if there are none.
std::vector<std::string> FeatureArrays(const std::string& features,
                                       std::span<const FeatureInput> inputs);

/// Returns the entries of these arrays. They must exist.
std::vector<ArrayEntry> EntriesOf(const Store& store, const std::string& features,
                                  std::span<const FeatureInput> inputs);

/// Returns the arrays by vertex type as a text that does not depend on the order of types; empty if
/// there are none.
std::string DescribeInputs(std::span<const FeatureInput> inputs);

/// Returns the entry of the array that the first layer reads: `options.features`, or with inputs by
/// type the array that the input pass writes. Errors: kNotFound, there is no such array.
Result<ArrayEntry> FirstSource(const GraphSnapshot& graph, const Model& model,
                               const LayerwiseOptions& options);

}  // namespace internal
}  // namespace rhizome
