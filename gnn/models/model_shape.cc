#include "gnn/models/model_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gnn/models/model_kinds.h"
#include "gnn/models/shape_types.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {
// DecodeModelShape (1) reads the spec of either format; (2) reads the widths and checks all ranges;
// (3) from format 2 on, compares the list of layers with the list that the shape implies. Types are
// in shape_types.h.

namespace {

constexpr std::uint32_t kMaxLayers = 64;
constexpr int kUntypedFormat = 2;
constexpr int kTypedFormat = 3;

Status BadShape(std::string_view field) {
  return Status::Corruption(
      fmt::format("model description: field \"{}\" is missing or out of range", field));
}

Result<std::int64_t> ReadInteger(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_integer()) return Fail(BadShape(field));
  return found->get<std::int64_t>();
}

Result<bool> ReadBool(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_boolean()) return Fail(BadShape(field));
  return found->get<bool>();
}

Result<std::string> ReadKind(const nlohmann::json& object) {
  const auto found = object.find("kind");
  if (found == object.end() || !found->is_string()) return Fail(BadShape("kind"));
  const std::string name = found->get<std::string>();
  if (FindModelInfo(name)) return name;
  return Fail(
      Status::Unsupported(fmt::format("model description: unknown kind of network \"{}\"", name)));
}

/// Reads the options of format 2 or later. An unknown option may change what the network computes,
/// so it is an error.
Result<std::map<std::string, std::string>> ReadOptions(const nlohmann::json& object,
                                                       const std::string& kind) {
  std::map<std::string, std::string> options;
  const auto found = object.find("options");
  if (found == object.end() || !found->is_object()) return Fail(BadShape("options"));
  RHIZOME_ASSIGN_OR_RETURN(const ModelInfo info, FindModelInfo(kind));
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) return Fail(BadShape("options"));
    const bool known =
        std::any_of(info.options.begin(), info.options.end(),
                    [&, &name = name](const ModelOption& option) { return option.name == name; });
    if (!known) {
      return Fail(
          Status::Unsupported(fmt::format("model description: option \"{}\" of model {} is unknown "
                                          "to this build; use a newer version of Rhizome",
                                          name, kind)));
    }
    options[name] = value.get<std::string>();
  }
  return options;
}

/// Returns the number of layers: format 1 counts them, later formats list them.
Result<std::int64_t> ReadLayers(const nlohmann::json& object, std::int64_t format) {
  if (format == 1) return ReadInteger(object, "layers");
  const auto found = object.find("layers");
  if (found == object.end() || !found->is_array()) return Fail(BadShape("layers"));
  return static_cast<std::int64_t>(found->size());
}

/// Checks that the listed layers match the shape.
Status CheckLayers(const nlohmann::json& object, const ModelShape& shape) {
  const nlohmann::json expected = nlohmann::json::parse(EncodeModelShape(shape));
  if (object.at("layers") == expected.at("layers")) return Status::Ok();
  return BadShape("layers");
}

Result<ModelSpec> ReadSpec(const nlohmann::json& object, std::int64_t format) {
  ModelSpec spec;
  RHIZOME_ASSIGN_OR_RETURN(spec.kind, ReadKind(object));
  if (format > 1) {
    RHIZOME_ASSIGN_OR_RETURN(spec.options, ReadOptions(object, spec.kind));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::int64_t layers, ReadLayers(object, format));
  if (layers < 1 || layers > kMaxLayers) return Fail(BadShape("layers"));
  spec.layers = static_cast<std::uint32_t>(layers);
  RHIZOME_ASSIGN_OR_RETURN(spec.hidden, ReadInteger(object, "hidden"));
  const auto dropout = object.find("dropout");
  if (dropout == object.end() || !dropout->is_number()) return Fail(BadShape("dropout"));
  spec.dropout = dropout->get<double>();
  RHIZOME_ASSIGN_OR_RETURN(spec.normalize_features, ReadBool(object, "normalize_features"));
  RHIZOME_ASSIGN_OR_RETURN(spec.no_edges, ReadBool(object, "no_edges"));
  return spec;
}

}  // namespace

HeadKind HeadOf(const ModelOptions& options) {
  const std::string& head = options.Choice("head");
  if (head == "none") return HeadKind::kNone;
  return head == "mlp" ? HeadKind::kMlp : HeadKind::kLinear;
}

/// Checks that the options can be combined.
Status CheckCombination(const ModelOptions& options) {
  const bool has_head = HeadOf(options) != HeadKind::kNone;
  if (!has_head && options.Choice("jump") != "none") {
    return Status::InvalidArgument(
        "option jump joins the outputs of layers of equal width, so it needs a head; set head to "
        "linear or mlp");
  }
  if (options.Flag("feed-forward") && (!has_head || options.Choice("jump") != "none")) {
    return Status::InvalidArgument(
        "option feed-forward needs a head, linear or mlp, and no jump between layers");
  }
  if (options.Flag("feed-forward") && options.Flag("residual")) {
    return Status::InvalidArgument(
        "blocks with option feed-forward are residual already; omit option residual");
  }
  return Status::Ok();
}

Result<ModelOptions> CheckShape(const ModelShape& shape) {
  const ModelSpec& spec = shape.spec;
  if (spec.layers < 1 || spec.layers > kMaxLayers) {
    return Fail(Status::InvalidArgument(
        fmt::format("a model of {} layers; it must have 1 to {}", spec.layers, kMaxLayers)));
  }
  const auto check_width = [](std::string_view what, std::int64_t width) {
    if (width >= 1 && width <= kMaxModelWidth) return Status::Ok();
    return Status::InvalidArgument(
        fmt::format("a model with {} {}; it must be 1 to {}", width, what, kMaxModelWidth));
  };
  RHIZOME_RETURN_IF_ERROR(check_width("input columns", shape.inputs));
  RHIZOME_RETURN_IF_ERROR(check_width("hidden columns", spec.hidden));
  RHIZOME_RETURN_IF_ERROR(check_width("classes", shape.classes));
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    return Fail(Status::InvalidArgument(
        fmt::format("a dropout of {}; it must be at least 0 and less than 1", spec.dropout)));
  }
  RHIZOME_ASSIGN_OR_RETURN(const ModelInfo info, FindModelInfo(spec.kind));
  RHIZOME_ASSIGN_OR_RETURN(ModelOptions options,
                           ModelOptions::Resolve(spec.kind, info.options, spec.options));
  RHIZOME_RETURN_IF_ERROR(CheckCombination(options));
  RHIZOME_RETURN_IF_ERROR(CheckShapeTypes(shape));
  return options;
}

std::map<std::string, std::string> OptionsOf(const ModelShape& shape) {
  std::map<std::string, std::string> values = CheckShape(shape)->values();
  if (shape.typed_inputs.empty()) values.erase(kInputActivation);
  return values;
}

std::string EncodeModelShape(const ModelShape& shape) {
  const Result<ModelOptions> options = CheckShape(shape);
  nlohmann::json layers = nlohmann::json::array();
  const bool has_head = HeadOf(*options) != HeadKind::kNone;
  for (std::uint32_t layer = 0; layer < shape.spec.layers; ++layer) {
    const bool is_output = layer + 1 == shape.spec.layers && !has_head;
    layers.push_back({{"kind", shape.spec.kind},
                      {"in", layer == 0 ? shape.inputs : shape.spec.hidden},
                      {"out", is_output ? shape.classes : shape.spec.hidden}});
  }
  nlohmann::json object = {
      {"format", shape.typed() ? kTypedFormat : kUntypedFormat},
      {"kind", shape.spec.kind},
      {"layers", std::move(layers)},
      {"inputs", shape.inputs},
      {"hidden", shape.spec.hidden},
      {"classes", shape.classes},
      {"dropout", shape.spec.dropout},
      {"normalize_features", shape.spec.normalize_features},
      {"no_edges", shape.spec.no_edges},
      {"options", OptionsOf(shape)},
  };
  AddShapeTypes(shape, object);
  return object.dump();
}

std::string DescribeModelShape(const ModelShape& shape) {
  const ModelSpec& spec = shape.spec;
  const Result<ModelOptions> usual =
      CheckShape({.spec = {.kind = spec.kind}, .inputs = 1, .classes = 1});
  const bool old = !shape.typed() && (spec.kind == "sage" || spec.kind == "gcn") && usual &&
                   CheckShape(shape)->values() == usual->values();
  if (!old) return EncodeModelShape(shape);
  const nlohmann::json object = {{"format", 1},
                                 {"kind", spec.kind},
                                 {"layers", spec.layers},
                                 {"inputs", shape.inputs},
                                 {"hidden", spec.hidden},
                                 {"classes", shape.classes},
                                 {"dropout", spec.dropout},
                                 {"normalize_features", spec.normalize_features},
                                 {"no_edges", spec.no_edges}};
  return object.dump();
}

Result<ModelShape> DecodeModelShape(std::string_view json) {
  const nlohmann::json object = ParseUntrustedJson(json);
  if (!object.is_object()) {
    return Fail(Status::Corruption("model description: not a JSON object"));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::int64_t format, ReadInteger(object, "format"));
  if (format < 1 || format > kTypedFormat) {
    return Fail(
        Status::Unsupported(fmt::format("model description: format {}, but this build reads 1 to "
                                        "{}; use a newer version of Rhizome",
                                        format, kTypedFormat)));
  }
  ModelShape shape;
  RHIZOME_ASSIGN_OR_RETURN(shape.spec, ReadSpec(object, format));
  RHIZOME_ASSIGN_OR_RETURN(shape.inputs, ReadInteger(object, "inputs"));
  RHIZOME_ASSIGN_OR_RETURN(shape.classes, ReadInteger(object, "classes"));
  if (format == kTypedFormat) RHIZOME_RETURN_IF_ERROR(ReadShapeTypes(object, shape));
  if (const auto checked = CheckShape(shape); !checked) {
    return Fail(Status::Corruption("model description: " + checked.error().message()));
  }
  if (format > 1) RHIZOME_RETURN_IF_ERROR(CheckLayers(object, shape));
  return shape;
}

}  // namespace internal
}  // namespace rhizome
