#include "index/graph/graph_create.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "index/generation/graph_builder.h"
#include "rhizome/job_control.h"
#include "storage/array/array_facts.h"
#include "storage/array/chunk_writer.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

// Names of an edge's other fields.
constexpr std::string_view kTaken[] = {"src", "dst", "type", "weight"};

// EdgeArrayName appends at most this many characters to the name of an attribute.
constexpr std::size_t kPartBytes = 6;

ArrayInput InputOf(const ArraySchema& array) {
  ArrayInput input{
      .name = array.name,
      .dim = array.dim,
      .dtype = array.dtype,
      .layout = array.layout,
      .codec = {.kind = CodecKind::kBloscLz4, .level = 5},
      .attributes = array.attributes,
      .read_rows = [](std::span<const VertexId>, std::span<std::byte>) { return Status::Ok(); }};
  const auto missing = MissingOfNewArray(array.name, array.dtype, array.dim);
  const bool given = std::ranges::any_of(
      array.attributes, [](const auto& fact) { return fact.first == kMissingAttribute; });
  if (missing && !given) input.attributes.emplace_back(kMissingAttribute, *missing);
  return input;
}

GraphInput InputOf(const GraphSchema& schema) {
  GraphInput input;
  input.weighted = schema.weighted;
  input.undirected = schema.undirected;
  input.vertex_type_names = schema.vertex_types;
  input.edge_type_names = schema.edge_types;
  if (schema.text_ids) input.id_kind = ExternalIdKind::kString;
  for (const EdgeAttributeSchema& attribute : schema.edge_attributes)
    input.edges.attributes.emplace_back(attribute.name, attribute.dtype, attribute.dim).attributes =
        attribute.attributes;
  for (const ArraySchema& array : schema.arrays) input.arrays.push_back(InputOf(array));
  return input;
}

}  // namespace

Status CheckEdgeAttributes(std::span<const EdgeAttributeSchema> added,
                           std::span<const EdgeAttributeInfo> existing) {
  std::uint64_t values = EdgeValueCount(existing);
  std::vector<std::string_view> names(std::begin(kTaken), std::end(kTaken));
  for (const EdgeAttributeInfo& attribute : existing) names.push_back(attribute.name);
  for (const EdgeAttributeSchema& attribute : added) {
    const std::string& name = attribute.name;
    RHIZOME_RETURN_IF_ERROR(CheckName("edge attribute", name));
    if (name.size() + kPartBytes > kMaxNameBytes)
      return Status::InvalidArgument(
          fmt::format("the name of the edge attribute '{}' is too long", name));
    if (std::find(names.begin(), names.end(), name) != names.end())
      return Status::AlreadyExists(
          fmt::format("edges have '{}' already; choose another name for the attribute", name));
    names.push_back(name);
    const bool integers = attribute.dtype == DataType::kInt64;
    const bool floats =
        attribute.dtype == DataType::kFloat32 || attribute.dtype == DataType::kFloat64;
    if (!integers && !floats)
      return Status::InvalidArgument(fmt::format(
          "the edge attribute '{}' is {}, but attributes of edges are int64, float32 or float64",
          name, DataTypeName(attribute.dtype)));
    if (name == "time" && !(integers && attribute.dim == 1))
      return Status::InvalidArgument("the edge attribute 'time' must be one int64");
    values += std::min(attribute.dim, kMaxEdgeValues + 1);
    if (attribute.dim == 0 || values > kMaxEdgeValues)
      return Status::InvalidArgument(fmt::format(
          "the edge attribute '{}' has {} values, but an edge can have 1 to {} in total", name,
          attribute.dim, kMaxEdgeValues));
  }
  return Status::Ok();
}

Result<std::unique_ptr<Store>> CreateEmptyStore(FileSystem& fs, const Path& path,
                                                const GraphSchema& schema,
                                                const StoreOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckEdgeAttributes(schema.edge_attributes, {}));
  for (const ArraySchema& array : schema.arrays)
    RHIZOME_RETURN_IF_ERROR(CheckNewArrayName(array.name));
  RHIZOME_ASSIGN_OR_RETURN(auto store, Store::Create(fs, path, StoreId::Random(), options));
  BuildOptions build;
  build.directions = schema.directions;
  const Status built = BuildGeneration(*store, InputOf(schema), build, JobControl());
  if (built.ok()) return store;
  static_cast<void>(Store::Discard(std::move(store)));
  return Fail(built);
}

}  // namespace internal
}  // namespace rhizome
