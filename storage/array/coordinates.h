#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/coordinate_names.h"
#include "rhizome/storage/manifest.h"

namespace rhizome::inline internal {

/// A Zarr array of one dimension, `row`, by which programs that read a generation's arrays as Zarr
/// know whose rows they are (FORMAT.md, "Coordinates"). The engine writes, verifies and repairs
/// them, and reads none.
struct Coordinate {
  CoordinateKind kind = CoordinateKind::kVertexId;
  std::string name;  ///< of its folder below arrays/
  friend bool operator==(const Coordinate&, const Coordinate&) = default;
};

/// The coordinates of a new generation, by name: `vertex_id` and, unless external ids are the
/// vertex ids, `external_id`; with underscores behind, where an array bears the name.
std::vector<Coordinate> ChooseCoordinates(
    ExternalIdKind ids, const std::function<bool(std::string_view name)>& is_array);

/// Those that a manifest lists the files of, by name; none in generations of older builds.
std::vector<Coordinate> CoordinatesOf(const Manifest& manifest);

/// Rows of each chunk of a coordinate, and how many chunks there are.
std::uint64_t CoordinateChunkRows(std::uint64_t rows);
std::uint64_t CoordinateChunks(std::uint64_t rows);

/// Vertex ids are int32 where that is wide enough.
bool HasNarrowVertexIds(std::uint64_t rows);

/// "arrays/vertex_id/zarr.json", "arrays/vertex_id/c.3", and the 3 of the latter.
std::string CoordinateJsonPath(const Coordinate& coordinate);
std::string CoordinateChunkPath(const Coordinate& coordinate, std::uint64_t chunk);
std::optional<std::uint64_t> ParseCoordinateChunk(const Coordinate& coordinate,
                                                  std::string_view path);

std::string EncodeCoordinateJson(const Coordinate& coordinate, const GenerationInfo& info);

/// The zarr.json of a generation's group of arrays: which generation it is, and which arrays are
/// coordinates, as xarray understands it. Without coordinates: that of older builds, which says
/// nothing.
std::string EncodeGroupJson(std::uint64_t generation, std::span<const Coordinate> coordinates);

/// The bytes of a chunk: of numbers, or of texts, of at most CoordinateChunkRows; filled up, and
/// with the checksum behind.
std::vector<std::byte> EncodeCoordinateChunk(std::span<const std::int64_t> numbers, bool narrow,
                                             std::uint64_t chunk_rows);
std::vector<std::byte> EncodeCoordinateChunk(std::span<const std::string> texts,
                                             std::uint64_t chunk_rows);

}  // namespace rhizome::inline internal
