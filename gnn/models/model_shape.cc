#include "rhizome/gnn/model_shape.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "rhizome/storage/name_table.h"
#include "rhizome/storage/untrusted_json.h"

namespace rhizome::inline internal {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::uint32_t kMaxLayers = 64;
constexpr int kFormat = 1;

/// As a model file says them.
constexpr NameTable<ModelKind, 2> kKindNames = {{
    {ModelKind::kSage, "sage"},
    {ModelKind::kGcn, "gcn"},
}};

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

Result<ModelKind> ReadKind(const nlohmann::json& object) {
  const auto found = object.find("kind");
  if (found == object.end() || !found->is_string()) return Fail(BadShape("kind"));
  const std::string name = found->get<std::string>();
  if (const std::optional<ModelKind> kind = KindOf(kKindNames, name)) return *kind;
  return Fail(
      Status::Unsupported(fmt::format("model description: unknown kind of network \"{}\"", name)));
}

Result<ModelSpec> ReadSpec(const nlohmann::json& object) {
  ModelSpec spec;
  RHIZOME_ASSIGN_OR_RETURN(spec.kind, ReadKind(object));
  RHIZOME_ASSIGN_OR_RETURN(const std::int64_t layers, ReadInteger(object, "layers"));
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

Status CheckShape(const ModelShape& shape) {
  const ModelSpec& spec = shape.spec;
  if (spec.layers < 1 || spec.layers > kMaxLayers) {
    return Status::InvalidArgument(
        fmt::format("a model of {} layers: it must have 1 to {}", spec.layers, kMaxLayers));
  }
  const auto check_width = [](std::string_view what, std::int64_t width) {
    if (width >= 1 && width <= kMaxWidth) return Status::Ok();
    return Status::InvalidArgument(
        fmt::format("a model with {} {}: it must be 1 to {}", width, what, kMaxWidth));
  };
  RHIZOME_RETURN_IF_ERROR(check_width("input columns", shape.inputs));
  RHIZOME_RETURN_IF_ERROR(check_width("hidden columns", spec.hidden));
  RHIZOME_RETURN_IF_ERROR(check_width("classes", shape.classes));
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    return Status::InvalidArgument(
        fmt::format("a dropout of {}: it must be at least 0 and less than 1", spec.dropout));
  }
  return Status::Ok();
}

std::string EncodeModelShape(const ModelShape& shape) {
  const nlohmann::json object = {
      {"format", kFormat},
      {"kind", NameOf(kKindNames, shape.spec.kind)},
      {"layers", shape.spec.layers},
      {"inputs", shape.inputs},
      {"hidden", shape.spec.hidden},
      {"classes", shape.classes},
      {"dropout", shape.spec.dropout},
      {"normalize_features", shape.spec.normalize_features},
      {"no_edges", shape.spec.no_edges},
  };
  return object.dump();
}

Result<ModelShape> DecodeModelShape(std::string_view json) {
  const nlohmann::json object = ParseUntrustedJson(json);
  if (!object.is_object()) {
    return Fail(Status::Corruption("model description: not a JSON object"));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::int64_t format, ReadInteger(object, "format"));
  if (format != kFormat) {
    return Fail(Status::Unsupported(
        fmt::format("model description: format {}, this build reads {}", format, kFormat)));
  }
  ModelShape shape;
  RHIZOME_ASSIGN_OR_RETURN(shape.spec, ReadSpec(object));
  RHIZOME_ASSIGN_OR_RETURN(shape.inputs, ReadInteger(object, "inputs"));
  RHIZOME_ASSIGN_OR_RETURN(shape.classes, ReadInteger(object, "classes"));
  if (const Status status = CheckShape(shape); !status.ok()) {
    return Fail(Status::Corruption("model description: " + status.message()));
  }
  return shape;
}

}  // namespace rhizome::inline internal
