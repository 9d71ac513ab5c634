#include "gnn/infer/input_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cache/feed/inputs.h"
#include "gnn/infer/layer_sizes.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {
namespace {

Status CheckInput(const GraphSnapshot& graph, const TypedInput& expected,
                  const FeatureInput& input) {
  if (input.array.empty()) {
    if (expected.dim == 0) return Status::Ok();
    return Status::InvalidArgument(
        fmt::format("the model was trained with {} columns of features for vertices of type {}; "
                    "name their array",
                    expected.dim, input.vertex_type));
  }
  if (LearnedColumns(input.array)) return Status::Ok();  // the model has its columns from here
  const ArrayEntry* const array = graph.store().manifest().FindArray(input.array);
  if (array == nullptr)
    return Status::NotFound(fmt::format("there is no array {}", ShownName(input.array)));
  if (expected.dim == 0)
    return Status::InvalidArgument(
        fmt::format("the model was trained without features of vertices of type {}; give none "
                    "instead of array {}",
                    input.vertex_type, ShownName(input.array)));
  if (array->dim != static_cast<std::uint64_t>(expected.dim))
    return Status::InvalidArgument(
        fmt::format("array {} has {} columns, but the model needs {} for vertices of type {}; give "
                    "the array that it was trained on",
                    ShownName(input.array), array->dim, expected.dim, input.vertex_type));
  if (array->rows != graph.info().vertices)
    return Status::InvalidArgument(fmt::format("array {} has {} rows, but there are {} vertices",
                                               ShownName(input.array), array->rows,
                                               graph.info().vertices));
  return Status::Ok();
}

}  // namespace

Result<std::vector<FeatureInput>> InputsOfModel(const GraphSnapshot& graph, const Model& model,
                                                std::span<const FeatureInput> given) {
  const InputLayer* const layer = model.inputs();
  if (layer == nullptr) {
    if (given.empty()) return std::vector<FeatureInput>();
    return Fail(Status::InvalidArgument(
        "the model reads one array for all vertices, not an array for each vertex type; give the "
        "name of that array (`features`)"));
  }
  std::vector<FeatureInput> all(given.begin(), given.end());
  const std::vector<std::string> types = graph.vertex_types();
  for (TypeId type = 0; type < types.size(); ++type) {
    const std::string& name = types[type];
    const bool has = std::any_of(given.begin(), given.end(), [&](const FeatureInput& input) {
      return input.vertex_type == name;
    });
    if (has) continue;
    const TypedInput& trained = model.shape().typed_inputs[layer->NumberOf(type)];
    all.push_back({.vertex_type = name, .array = trained.array});
  }
  RHIZOME_ASSIGN_OR_RETURN(InputArrays arrays, ResolveInputs(graph, all));
  RHIZOME_RETURN_IF_ERROR(CheckInputs(graph, model, arrays.of_types));
  return std::move(arrays.of_types);
}

Status CheckInputs(const GraphSnapshot& graph, const Model& model,
                   std::span<const FeatureInput> inputs) {
  for (TypeId type = 0; type < inputs.size(); ++type) {
    const std::size_t number = model.inputs()->NumberOf(type);
    RHIZOME_RETURN_IF_ERROR(CheckInput(graph, model.shape().typed_inputs[number], inputs[type]));
  }
  return Status::Ok();
}

std::vector<std::string> FeatureArrays(const std::string& features,
                                       std::span<const FeatureInput> inputs) {
  return inputs.empty() ? std::vector<std::string>{features} : ArraysOf(inputs);
}

std::vector<ArrayEntry> EntriesOf(const Store& store, const std::string& features,
                                  std::span<const FeatureInput> inputs) {
  std::vector<ArrayEntry> entries;
  for (const std::string& name : FeatureArrays(features, inputs))
    entries.push_back(*store.manifest().FindArray(name));
  return entries;
}

std::string DescribeInputs(std::span<const FeatureInput> inputs) {
  if (inputs.empty()) return {};
  nlohmann::json by_type = nlohmann::json::object();
  for (const FeatureInput& input : inputs) by_type[input.vertex_type] = input.array;
  return by_type.dump();
}

Result<ArrayEntry> FirstSource(const GraphSnapshot& graph, const Model& model,
                               const LayerwiseOptions& options) {
  if (model.inputs() != nullptr) return LayerSizes(graph, model, options).FirstRows();
  RHIZOME_ASSIGN_OR_RETURN(const auto array, graph.store().OpenArray(options.features));
  return array->entry();
}

}  // namespace internal
}  // namespace rhizome
