#include "storage/array/coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rhizome/chunk_array.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/zarr_json.h"
#include "storage/base/bytes.h"
#include "storage/base/hash.h"

namespace rhizome {
inline namespace internal {

namespace {
// Coordinates are ordinary Zarr arrays next to the arrays of a generation. EncodeCoordinateJson
// writes the zarr.json of one, EncodeCoordinateChunk its chunks, and EncodeGroupJson the group's
// list of them. The path functions at the end convert between chunk numbers and file names.

using Json = ZarrJson;

constexpr std::string_view kJsonName = "/zarr.json";

Json DataTypeOf(const Coordinate& coordinate, const GenerationInfo& info) {
  if (coordinate.kind == CoordinateKind::kVertexType) return "int32";
  if (coordinate.kind == CoordinateKind::kVertexId)
    return HasNarrowVertexIds(info.vertices) ? "int32" : "int64";
  return info.id_kind == ExternalIdKind::kString ? "string" : "int64";
}

Json FillValueOf(const Json& type) {
  if (type == "string") return "";
  if (type == "int32") return std::numeric_limits<std::int32_t>::min();
  return std::numeric_limits<std::int64_t>::min();
}

Json CodecsOf(const Json& type) {
  Json first = Json::Object().With("name", "bytes");
  first.Set("configuration", Json::Object().With("endian", "little"));
  if (type == "string") first = Json::Object().With("name", "vlen-utf8");
  return Json::Array(first, Json::Object().With("name", "crc32c"));
}

/// Returns the attribute long_name. Stores contain it, so the words must not change.
std::string MeaningOf(const Coordinate& coordinate, const Json& type) {
  if (coordinate.kind == CoordinateKind::kVertexId)
    return "vertex id of the row, as the generation has it; -1: the vertex was deleted";
  if (coordinate.kind == CoordinateKind::kVertexType)
    return "vertex type of the row: a position in the group's attribute vertex_types";
  return type == "string" ? "external id of the row's vertex; empty: the vertex was deleted"
                          : "external id of the row's vertex; without meaning where the vertex was "
                            "deleted";
}

std::vector<std::byte> Sealed(ByteWriter& out) {
  out.Number(Crc32c(out.bytes()));
  return out.Take();
}

}  // namespace

std::vector<Coordinate> ChooseCoordinates(
    ExternalIdKind ids, std::size_t vertex_types,
    const std::function<bool(std::string_view name)>& is_array) {
  std::vector<Coordinate> chosen;
  const auto add = [&](CoordinateKind kind) {
    std::string name(PlainCoordinateName(kind));
    while (is_array(name)) name += '_';
    chosen.push_back({kind, std::move(name)});
  };
  if (ids != ExternalIdKind::kDense) add(CoordinateKind::kExternalId);
  add(CoordinateKind::kVertexId);
  if (vertex_types > 1) add(CoordinateKind::kVertexType);
  return chosen;
}

std::vector<Coordinate> CoordinatesOf(const Manifest& manifest) {
  std::vector<Coordinate> found;
  for (const FileEntry& file : manifest.files) {
    if (!file.path.starts_with(kArraysPrefix) || !file.path.ends_with(kJsonName)) continue;
    const std::string_view name = ArrayOfFile(file.path);
    const auto kind = CoordinateKindOf(name);
    if (!kind || FindStoredArray(manifest.arrays, name) != nullptr) continue;
    found.push_back({*kind, std::string(name)});
  }
  return found;
}

std::uint64_t CoordinateChunkRows(std::uint64_t rows) {
  return DefaultChunkRows(rows, sizeof(std::int64_t)).value();
}

std::uint64_t CoordinateChunks(std::uint64_t rows) {
  const std::uint64_t chunk_rows = CoordinateChunkRows(rows);
  return rows / chunk_rows + (rows % chunk_rows != 0 ? 1 : 0);
}

bool HasNarrowVertexIds(std::uint64_t rows) {
  return rows <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
}

std::string CoordinateJsonPath(const Coordinate& coordinate) {
  return fmt::format("{}{}{}", kArraysPrefix, coordinate.name, kJsonName);
}

std::string CoordinateChunkPath(const Coordinate& coordinate, std::uint64_t chunk) {
  return fmt::format("{}{}/c.{}", kArraysPrefix, coordinate.name, chunk);
}

std::optional<std::uint64_t> ParseCoordinateChunk(const Coordinate& coordinate,
                                                  std::string_view path) {
  const std::string first = CoordinateChunkPath(coordinate, 0);
  if (path == first) return 0;
  const std::string_view prefix = std::string_view(first).substr(0, first.size() - 1);
  if (!path.starts_with(prefix)) return std::nullopt;
  return ParseVersion(path.substr(prefix.size()));
}

std::string EncodeCoordinateJson(const Coordinate& coordinate, const GenerationInfo& info) {
  const Json type = DataTypeOf(coordinate, info);
  const auto named = [](const char* name, Json configuration) {
    return Json::Object().With("name", name).With("configuration", std::move(configuration));
  };
  const Json chunk_shape = Json::Array(CoordinateChunkRows(info.vertices));
  const Json chunk_grid = Json::Object().With("chunk_shape", chunk_shape);
  Json json = Json::Object();
  json.Set("zarr_format", 3);
  json.Set("node_type", "array");
  json.Set("shape", Json::Array(info.vertices));
  json.Set("data_type", type);
  json.Set("chunk_grid", named("regular", chunk_grid));
  json.Set("chunk_key_encoding", named("default", Json::Object().With("separator", ".")));
  json.Set("fill_value", FillValueOf(type));
  json.Set("codecs", CodecsOf(type));
  json.Set("dimension_names", Json::Array("row"));
  json.Set("attributes", Json::Object().With("long_name", MeaningOf(coordinate, type)));
  return json.Dump(2) + "\n";
}

std::string EncodeGroupJson(std::uint64_t generation, std::span<const Coordinate> coordinates,
                            std::span<const std::string> vertex_types) {
  Json attributes = Json::Object();
  if (!coordinates.empty()) {
    std::string names;
    for (const Coordinate& one : coordinates) names += (names.empty() ? "" : " ") + one.name;
    attributes.Set("coordinates", std::move(names));
    Json ours = Json::Object().With("generation", std::to_string(generation));
    const bool typed = std::ranges::any_of(
        coordinates, [](const Coordinate& one) { return one.kind == CoordinateKind::kVertexType; });
    if (typed) {
      Json types = Json::Array();
      for (const std::string& type : vertex_types) types.Add(type);
      ours.Set("vertex_types", std::move(types));
    }
    attributes.Set("rhizome", std::move(ours));
  }
  Json json = Json::Object();
  json.Set("zarr_format", 3);
  json.Set("node_type", "group");
  json.Set("attributes", std::move(attributes));
  return json.Dump(2) + "\n";
}

std::vector<std::byte> EncodeCoordinateChunk(std::span<const std::int64_t> numbers, bool narrow,
                                             std::uint64_t chunk_rows) {
  ByteWriter out;
  for (std::uint64_t i = 0; i < chunk_rows; ++i) {
    const std::int64_t number = i < numbers.size() ? numbers[i] : 0;
    if (narrow)
      out.Number(static_cast<std::int32_t>(number));
    else
      out.Number(number);
  }
  return Sealed(out);
}

// The layout of numcodecs' vlen-utf8: the number of texts, then each text preceded by its length.
std::vector<std::byte> EncodeCoordinateChunk(std::span<const std::string> texts,
                                             std::uint64_t chunk_rows) {
  ByteWriter out;
  out.Number(static_cast<std::uint32_t>(chunk_rows));
  for (std::uint64_t i = 0; i < chunk_rows; ++i)
    out.String(i < texts.size() ? std::string_view(texts[i]) : std::string_view());
  return Sealed(out);
}

}  // namespace internal
}  // namespace rhizome
