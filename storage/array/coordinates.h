#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/manifest.h"
#include "storage/array/coordinate_names.h"

namespace rhizome {
inline namespace internal {

/// A one-dimensional Zarr array, `row`, from which programs that read a generation's arrays as Zarr
/// learn the vertex of each row (FORMAT.md, "Coordinates"). The engine writes, verifies and repairs
/// coordinates, but does not use them.
struct Coordinate {
  CoordinateKind kind = CoordinateKind::kVertexId;
  std::string name;  ///< the name of its folder below arrays/
  friend bool operator==(const Coordinate&, const Coordinate&) = default;
};

/// Returns the coordinates of a new generation, sorted by name: `vertex_id`, `external_id` unless
/// external ids are the vertex ids, and `vertex_type` if there are several. Underscores are
/// appended while an array has the same name.
std::vector<Coordinate> ChooseCoordinates(
    ExternalIdKind ids, std::size_t vertex_types,
    const std::function<bool(std::string_view name)>& is_array);

/// Returns the coordinates whose files a manifest lists, sorted by name; empty for generations of
/// older builds.
std::vector<Coordinate> CoordinatesOf(const Manifest& manifest);

/// Return the number of rows per chunk of a coordinate, and the number of its chunks.
std::uint64_t CoordinateChunkRows(std::uint64_t rows);
std::uint64_t CoordinateChunks(std::uint64_t rows);

/// Returns whether the coordinate of vertex ids is int32; it is if int32 is wide enough.
bool HasNarrowVertexIds(std::uint64_t rows);

/// Create and parse the paths of a coordinate: "arrays/vertex_id/zarr.json",
/// "arrays/vertex_id/c.3", and the 3 in the latter.
std::string CoordinateJsonPath(const Coordinate& coordinate);
std::string CoordinateChunkPath(const Coordinate& coordinate, std::uint64_t chunk);
std::optional<std::uint64_t> ParseCoordinateChunk(const Coordinate& coordinate,
                                                  std::string_view path);

std::string EncodeCoordinateJson(const Coordinate& coordinate, const GenerationInfo& info);

/// Creates the zarr.json of a generation's group of arrays. It states the number of the generation
/// and, in xarray's convention, which arrays are coordinates; with a coordinate of vertex types
/// also `vertex_types`, their names. Without coordinates it has no attributes, as in older builds.
std::string EncodeGroupJson(std::uint64_t generation, std::span<const Coordinate> coordinates,
                            std::span<const std::string> vertex_types);

/// Encodes a chunk of numbers or texts, at most `chunk_rows` of them. It is padded with 0 or empty
/// texts, and ends in its CRC-32C.
std::vector<std::byte> EncodeCoordinateChunk(std::span<const std::int64_t> numbers, bool narrow,
                                             std::uint64_t chunk_rows);
std::vector<std::byte> EncodeCoordinateChunk(std::span<const std::string> texts,
                                             std::uint64_t chunk_rows);

}  // namespace internal
}  // namespace rhizome
