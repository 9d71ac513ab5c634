// Checks of a GraphInput. CheckGraphInput checks vertices, edges, arrays and homes; DescribeArray
// fills in and checks the manifest entry of one array.

#include "index/generation/graph_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "index/generation/spilled_graph.h"
#include "index/homes/home_array.h"
#include "index/topology/type_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/file_system.h"
#include "storage/array/array_rules.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/type_names.h"

namespace rhizome {
inline namespace internal {
namespace {

template <typename... Args>
Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Status::InvalidArgument(fmt::format(format, std::forward<Args>(args)...));
}

Status CheckLength(std::string_view column, std::size_t length, std::uint64_t expected) {
  if (length == expected) return Status::Ok();
  return Invalid("{} has {} entries, expected {}", column, length, expected);
}

Status CheckTypeNames(std::string_view kind, const std::vector<std::string>& names) {
  if (names.empty() || names.size() > kMaxTypes)
    return Invalid("{} {} types, expected 1 to {}", names.size(), kind, kMaxTypes);
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    RHIZOME_RETURN_IF_ERROR(CheckTypeName(fmt::format("{} type", kind), name));
    if (!seen.insert(name).second) return Invalid("{} type '{}' is named twice", kind, name);
  }
  return Status::Ok();
}

Status CheckTypes(std::string_view kind, std::span<const TypeId> types, std::size_t count) {
  const auto beyond =
      std::find_if(types.begin(), types.end(), [&](TypeId type) { return type >= count; });
  if (beyond == types.end()) return Status::Ok();
  return Invalid("{} {} has type {}, but there are {} types", kind, beyond - types.begin(), *beyond,
                 count);
}

Status CheckEnds(std::string_view column, std::span<const VertexId> ends, std::uint64_t vertices) {
  const auto beyond = std::find_if(ends.begin(), ends.end(), [&](VertexId vertex) {
    return vertex < 0 || static_cast<std::uint64_t>(vertex) >= vertices;
  });
  if (beyond == ends.end()) return Status::Ok();
  return Invalid("edge {}: {} is vertex {}, but there are {} vertices", beyond - ends.begin(),
                 column, *beyond, vertices);
}

Status CheckEdges(const GraphInput& input) {
  const EdgeList& edges = input.edges;
  RHIZOME_RETURN_IF_ERROR(CheckLength("the dst column", edges.dst.size(), edges.size()));
  RHIZOME_RETURN_IF_ERROR(CheckEnds("src", edges.src, input.vertex_count));
  RHIZOME_RETURN_IF_ERROR(CheckEnds("dst", edges.dst, input.vertex_count));
  if (!edges.type.empty()) {
    RHIZOME_RETURN_IF_ERROR(CheckLength("the edge type column", edges.type.size(), edges.size()));
    RHIZOME_RETURN_IF_ERROR(CheckTypes("edge", edges.type, input.edge_type_names.size()));
  }
  for (const EdgeAttribute& attribute : edges.attributes)
    RHIZOME_RETURN_IF_ERROR(CheckLength(fmt::format("the edge attribute \"{}\"", attribute.name()),
                                        attribute.size(), edges.size()));
  if (edges.weight.empty() && !input.weighted) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(CheckLength("the weight column", edges.weight.size(), edges.size()));
  const auto nan = std::find_if(edges.weight.begin(), edges.weight.end(),
                                [](float weight) { return std::isnan(weight); });
  if (nan == edges.weight.end()) return Status::Ok();
  return Invalid("edge {}: its weight is not a number", nan - edges.weight.begin());
}

Status CheckVertices(const GraphInput& input) {
  if (input.vertex_count > static_cast<std::uint64_t>(INT64_MAX))
    return Invalid("{} vertices are more than an int64 can count", input.vertex_count);
  if (!input.vertex_type.empty()) {
    RHIZOME_RETURN_IF_ERROR(
        CheckLength("the vertex type column", input.vertex_type.size(), input.vertex_count));
    RHIZOME_RETURN_IF_ERROR(
        CheckTypes("vertex", input.vertex_type, input.vertex_type_names.size()));
  }
  if (input.write_ids || (input.spilled && input.spilled->dictionary)) return Status::Ok();
  switch (input.id_kind) {
    case ExternalIdKind::kDense:
      return Status::Ok();
    case ExternalIdKind::kInteger:
      return CheckLength("the integer id column", input.integer_ids.size(), input.vertex_count);
    case ExternalIdKind::kString:
      return CheckLength("the string id column", input.string_ids.size(), input.vertex_count);
    default:
      return Invalid("unknown kind of external ids");
  }
}

Status CheckBound(const ArrayInput& array, const std::vector<std::string>& types) {
  const std::string_view type = BoundType(array.attributes);
  if (type.empty()) return Status::Ok();
  if (types.size() < 2)
    return Invalid(
        "array \"{}\" is bound to the vertex type '{}', but there is only one type; "
        "leave the type out",
        array.name, type);
  if (TypeNamed(types, type)) return Status::Ok();
  return Invalid(
      "array \"{}\" is bound to the vertex type '{}', which does not exist; vertex "
      "types: {}",
      array.name, type, ListOfNames(types));
}

Status CheckArrays(const GraphInput& input) {
  std::set<std::string_view> names;
  for (const ArrayInput& array : input.arrays) {
    RHIZOME_RETURN_IF_ERROR(DescribeArray(array, input.vertex_count, 0));
    if (array.name.ends_with(kSidecarSuffix))
      return Invalid("array \"{}\": names ending in {} are for checksums of rows", array.name,
                     kSidecarSuffix);
    if (!names.insert(array.name).second) return Invalid("array \"{}\" is given twice", array.name);
    if (!array.read_rows) return Invalid("array \"{}\" has no source of rows", array.name);
    RHIZOME_RETURN_IF_ERROR(CheckBound(array, input.vertex_type_names));
  }
  return Status::Ok();
}

/// Checks that homes and their rule are given together, and that no other array has the name of the
/// home array.
Status CheckHomes(const GraphInput& input, const BuildOptions& options) {
  const bool given = options.homes == HomeRule::kFile;
  if (given != !input.homes.empty() && (input.vertex_count > 0 || !given))
    return Invalid("an array of homes must be given with HomeRule::kFile, and only with it");
  if (options.homes == HomeRule::kNone) return Status::Ok();
  for (const ArrayInput& array : input.arrays)
    if (array.name == kHomeArray)
      return Invalid(
          "the homes of rows become the array '{}', but another array has that name; choose "
          "another name for it",
          kHomeArray);
  if (!given) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(CheckLength("homes", input.homes.size(), input.vertex_count));
  const std::uint32_t homes = options.partition.partitions;
  const auto beyond = std::find_if(input.homes.begin(), input.homes.end(),
                                   [&](PartitionId home) { return home >= homes; });
  if (beyond == input.homes.end()) return Status::Ok();
  return Invalid("vertex {}: home {} is not in [0, {})", beyond - input.homes.begin(), *beyond,
                 homes);
}

constexpr std::uint64_t kSplitsAtOnce = std::uint64_t{1} << 16;

}  // namespace

Result<std::vector<VertexId>> TrainingVertices(const GraphInput& input) {
  std::vector<VertexId> seeds;
  const auto split =
      std::find_if(input.arrays.begin(), input.arrays.end(), [](const ArrayInput& array) {
        return array.name == "split" && array.dtype == DataType::kUint8 && array.dim == 1;
      });
  if (split == input.arrays.end()) return seeds;
  if (split->begin)
    return Fail(
        Invalid("homes need the training vertices, but the array 'split' can only be read in the "
                "order of rows"));
  std::vector<VertexId> vertices;
  std::vector<std::uint8_t> values;
  const auto bound = TypeNamed(input.vertex_type_names, BoundType(split->attributes));
  for (std::uint64_t first = 0; first < input.vertex_count; first += kSplitsAtOnce) {
    const std::uint64_t end = std::min(first + kSplitsAtOnce, input.vertex_count);
    vertices.clear();
    for (std::uint64_t v = first; v < end; ++v)
      if (!bound || (v < input.vertex_type.size() && input.vertex_type[v] == *bound))
        vertices.push_back(static_cast<VertexId>(v));
    values.resize(vertices.size());
    RHIZOME_RETURN_IF_ERROR(split->read_rows(vertices, std::as_writable_bytes(std::span(values))));
    for (std::size_t i = 0; i < vertices.size(); ++i)
      if (values[i] == 0) seeds.push_back(vertices[i]);
  }
  return seeds;
}

ArrayInput ArrayOfHomes(const StoredHomes& facts, std::vector<PartitionId> homes) {
  ArrayInput array;
  array.name = kHomeArray;
  array.dim = 1;
  array.dtype = DataType::kInt32;
  array.attributes = HomeAttributes(facts);
  // std::function copies its target, so the homes are in a shared pointer.
  array.read_rows = [homes = std::make_shared<const std::vector<PartitionId>>(std::move(homes))](
                        std::span<const VertexId> vertices, std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const std::int32_t home = (*homes)[static_cast<std::size_t>(vertices[i])];
      std::memcpy(out.data() + i * sizeof(home), &home, sizeof(home));
    }
    return Status::Ok();
  };
  return array;
}

Result<ArrayEntry> DescribeArray(const ArrayInput& array, std::uint64_t rows,
                                 std::uint64_t array_id, std::optional<std::uint64_t> chunk_rows) {
  ArrayEntry entry;
  entry.name = array.name;
  entry.rows = rows;
  entry.dim = array.dim;
  entry.dtype = array.dtype;
  entry.layout = array.layout;
  entry.codec = array.layout == ArrayLayout::kRow ? Codec{} : array.codec;
  entry.chunk_rows = array.chunk_rows;
  entry.array_id = array_id;
  entry.attributes = array.attributes;
  std::sort(entry.attributes.begin(), entry.attributes.end());
  // Sizes can be computed only for a valid dtype and shape, so the check runs before them.
  if (entry.chunk_rows == 0) entry.chunk_rows = 1;
  RHIZOME_RETURN_IF_ERROR(CheckStoredArray(entry));
  entry.codec.element_bytes = DataTypeBytes(entry.dtype);
  entry.chunk_rows = array.chunk_rows;
  entry.inner_rows = array.inner_rows;
  RHIZOME_RETURN_IF_ERROR(ChooseChunkRows(entry, chunk_rows));
  RHIZOME_RETURN_IF_ERROR(CheckStoredArray(entry));
  return entry;
}

Status CheckGraphInput(const GraphInput& input, const BuildOptions& options) {
  const std::uint32_t partitions = options.partition.partitions;
  if (partitions == 0 || partitions > kMaxPartitions)
    return Invalid("{} partitions, expected 1 to {}", partitions, kMaxPartitions);
  RHIZOME_RETURN_IF_ERROR(CheckTypeNames("vertex", input.vertex_type_names));
  RHIZOME_RETURN_IF_ERROR(CheckTypeNames("edge", input.edge_type_names));
  RHIZOME_RETURN_IF_ERROR(CheckVertices(input));
  RHIZOME_RETURN_IF_ERROR(CheckEdges(input));
  RHIZOME_RETURN_IF_ERROR(CheckHomes(input, options));
  return CheckArrays(input);
}

}  // namespace internal
}  // namespace rhizome
