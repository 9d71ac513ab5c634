#include "gnn/models/shape_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "gnn/models/model_kinds.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kMaxNames = 65535;  // types are numbered with 16 bits

Status BadField(std::string_view field) {
  return Status::Corruption(
      fmt::format("model description: field \"{}\" is missing or out of range", field));
}

Status CheckNames(std::string_view what, const std::vector<std::string>& names) {
  if (names.size() > kMaxNames)
    return Status::InvalidArgument(
        fmt::format("{} {}s; a model has at most {}", names.size(), what, kMaxNames));
  std::set<std::string_view> known;
  for (const std::string& name : names) {
    if (name.empty())
      return Status::InvalidArgument(fmt::format("a {} of the model has no name", what));
    if (!known.insert(name).second)
      return Status::InvalidArgument(
          fmt::format("two {}s of the model are named '{}'", what, name));
  }
  return Status::Ok();
}

Status ReadNames(const nlohmann::json& description, const char* field,
                 std::vector<std::string>& names) {
  const auto found = description.find(field);
  if (found == description.end() || !found->is_array()) return BadField(field);
  for (const nlohmann::json& name : *found) {
    if (!name.is_string()) return BadField(field);
    names.push_back(name.get<std::string>());
  }
  return Status::Ok();
}

}  // namespace

Status CheckShapeTypes(const ModelShape& shape) {
  RHIZOME_RETURN_IF_ERROR(CheckNames("vertex type", shape.vertex_types));
  RHIZOME_RETURN_IF_ERROR(CheckNames("edge type", shape.relations));
  if (shape.by_side && shape.relations.size() > kMaxNames / 2)
    return Status::InvalidArgument(fmt::format(
        "{} edge types in both directions; a model that follows both has at most {}; follow one of "
        "them, for example by `direction=in`",
        shape.relations.size(), kMaxNames / 2));
  if (shape.typed_inputs.empty()) {
    if (!shape.spec.options.contains(kInputActivation)) return Status::Ok();
    return Status::InvalidArgument(
        "option input-activation belongs to the input layer of a model with an array for each "
        "vertex type; name these arrays (`features`), or omit the option");
  }
  if (shape.typed_inputs.size() != shape.vertex_types.size())
    return Status::InvalidArgument(fmt::format("{} inputs for {} vertex types; give one for each",
                                               shape.typed_inputs.size(),
                                               shape.vertex_types.size()));
  for (std::size_t type = 0; type < shape.typed_inputs.size(); ++type) {
    const TypedInput& input = shape.typed_inputs[type];
    if (input.dim < 0 || input.dim > kMaxModelWidth || (input.dim == 0) != input.array.empty())
      return Status::InvalidArgument(
          fmt::format("an array '{}' with {} columns for vertex type {}; it must have 1 to {}",
                      input.array, input.dim, shape.vertex_types[type], kMaxModelWidth));
  }
  if (shape.inputs == shape.spec.hidden) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("an input layer with {} columns; it must have {}, as the hidden layers",
                  shape.inputs, shape.spec.hidden));
}

void AddShapeTypes(const ModelShape& shape, nlohmann::json& description) {
  if (!shape.typed()) return;
  description["vertex_types"] = shape.vertex_types;
  description["relations"] = shape.relations;
  description["by_side"] = shape.by_side;
  nlohmann::json inputs = nlohmann::json::array();
  for (const TypedInput& input : shape.typed_inputs)
    inputs.push_back({{"array", input.array}, {"dim", input.dim}});
  description["typed_inputs"] = std::move(inputs);
}

Status ReadShapeTypes(const nlohmann::json& description, ModelShape& shape) {
  RHIZOME_RETURN_IF_ERROR(ReadNames(description, "vertex_types", shape.vertex_types));
  RHIZOME_RETURN_IF_ERROR(ReadNames(description, "relations", shape.relations));
  const auto by_side = description.find("by_side");
  if (by_side == description.end() || !by_side->is_boolean()) return BadField("by_side");
  shape.by_side = by_side->get<bool>();
  const auto inputs = description.find("typed_inputs");
  if (inputs == description.end() || !inputs->is_array()) return BadField("typed_inputs");
  for (const nlohmann::json& input : *inputs) {
    if (!input.is_object() || !input.contains("array") || !input["array"].is_string() ||
        !input.contains("dim") || !input["dim"].is_number_integer())
      return BadField("typed_inputs");
    shape.typed_inputs.push_back(
        {.array = input["array"].get<std::string>(), .dim = input["dim"].get<std::int64_t>()});
  }
  return shape.typed() ? Status::Ok() : BadField("vertex_types");
}

Status NameShapeTypes(const std::vector<std::string>& vertex_types,
                      const std::vector<std::string>& edge_types, ModelShape& shape) {
  RHIZOME_ASSIGN_OR_RETURN(const ModelInfo info, FindModelInfo(shape.spec.kind));
  if (info.typed || !shape.typed_inputs.empty()) shape.vertex_types = vertex_types;
  if (info.typed) shape.relations = edge_types;
  return Status::Ok();
}

Result<std::vector<std::uint32_t>> NumbersOfTypes(std::string_view what,
                                                  const std::vector<std::string>& ours,
                                                  const std::vector<std::string>& known) {
  std::vector<std::uint32_t> numbers;
  std::vector<std::string> missing;
  for (const std::string& name : ours) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) missing.push_back(name);
    numbers.push_back(static_cast<std::uint32_t>(found - known.begin()));
  }
  if (missing.empty()) return numbers;
  return Fail(Status::Unsupported(
      fmt::format("the model was trained without the {}s {} of the store; train it on this store",
                  what, fmt::join(missing, ", "))));
}

}  // namespace internal
}  // namespace rhizome
