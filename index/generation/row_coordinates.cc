// Coordinates: Zarr arrays with the vertex id and the external id of each row. RowIdsOf returns a
// source of external ids: a dictionary, a function, or a spill file by row. EncodeCoordinate
// encodes one chunk; CheckCoordinates compares its hash with the manifest.

#include "index/generation/row_coordinates.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "rhizome/chunk_array.h"
#include "storage/base/hash.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::int64_t kDeletedVertex = -1;  // a deleted vertex
// Integer id that is written for a deleted vertex.
constexpr std::int64_t kNoId = std::numeric_limits<std::int64_t>::min();

/// Ids in a file, in the order of their rows.
struct StoredIds {
  IdSpool spool;
  std::optional<IdSpoolReader> reader;
};

ExternalId DecodeId(ExternalIdKind kind, std::string_view id) {
  if (kind == ExternalIdKind::kString) return std::string(id);
  std::int64_t integer = 0;
  std::memcpy(&integer, id.data(), std::min(id.size(), sizeof(integer)));
  return integer;
}

std::vector<std::byte> EncodeVertexIds(std::span<const VertexId> vertices, const RowIds& ids,
                                       std::uint64_t rows) {
  std::vector<std::int64_t> numbers(vertices.begin(), vertices.end());
  for (std::int64_t& number : numbers)
    if (ids.is_deleted(number)) number = kDeletedVertex;
  return EncodeCoordinateChunk(numbers, HasNarrowVertexIds(rows), CoordinateChunkRows(rows));
}

Result<std::vector<std::byte>> EncodeExternalIds(Row first, std::span<const VertexId> vertices,
                                                 const RowIds& ids, std::uint64_t rows) {
  std::vector<ExternalId> given;
  RHIZOME_RETURN_IF_ERROR(ids.read(first, vertices, given));
  if (ids.kind == ExternalIdKind::kString) {
    std::vector<std::string> texts(vertices.size());
    for (std::size_t i = 0; i < vertices.size(); ++i)
      if (!ids.is_deleted(vertices[i])) texts[i] = std::get<std::string>(std::move(given[i]));
    return EncodeCoordinateChunk(texts, CoordinateChunkRows(rows));
  }
  std::vector<std::int64_t> numbers(vertices.size(), kNoId);
  for (std::size_t i = 0; i < vertices.size(); ++i)
    if (!ids.is_deleted(vertices[i])) numbers[i] = std::get<std::int64_t>(given[i]);
  return EncodeCoordinateChunk(numbers, /*narrow=*/false, CoordinateChunkRows(rows));
}

}  // namespace

RowIds RowIdsOf(const VertexIds& ids) {
  return RowIdsOf(
      ids.kind(), [&ids](VertexId vertex) { return ids.IsDeleted(vertex); },
      [&ids](VertexId vertex) { return ids.IdOf(vertex); });
}

RowIds RowIdsOf(ExternalIdKind kind, std::function<bool(VertexId)> is_deleted,
                std::function<ExternalId(VertexId)> id_of) {
  return {kind, std::move(is_deleted),
          [id_of = std::move(id_of)](Row, std::span<const VertexId> vertices,
                                     std::vector<ExternalId>& ids) {
            for (const VertexId vertex : vertices) ids.push_back(id_of(vertex));
            return Status::Ok();
          }};
}

Result<RowIds> RowIdsOf(ExternalIdKind kind, IdSpool by_row) {
  const auto stored = std::make_shared<StoredIds>();
  stored->spool = std::move(by_row);
  RHIZOME_ASSIGN_OR_RETURN(IdSpoolReader reader, IdSpoolReader::Open(stored->spool));
  stored->reader.emplace(std::move(reader));
  return RowIds{kind, [](VertexId) { return false; },
                [kind, stored](Row, std::span<const VertexId> vertices,
                               std::vector<ExternalId>& out) -> Status {
                  for (std::size_t i = 0; i < vertices.size(); ++i) {
                    RHIZOME_ASSIGN_OR_RETURN(const auto id, stored->reader->Next());
                    if (!id) return Status::Corruption("there are fewer spilled ids than rows");
                    out.push_back(DecodeId(kind, *id));
                  }
                  return Status::Ok();
                }};
}

Result<std::vector<std::byte>> EncodeCoordinate(const Coordinate& coordinate, std::uint64_t chunk,
                                                const VertexOrder& order, const RowIds& ids) {
  const std::uint64_t rows = order.size();
  const std::uint64_t first = chunk * CoordinateChunkRows(rows);
  const std::uint64_t end = std::min(first + CoordinateChunkRows(rows), rows);
  std::vector<VertexId> vertices;
  for (std::uint64_t row = first; row < end; ++row)
    vertices.push_back(order.VertexAt(static_cast<Row>(row)));
  if (coordinate.kind == CoordinateKind::kVertexId) return EncodeVertexIds(vertices, ids, rows);
  if (coordinate.kind == CoordinateKind::kVertexType) {
    std::vector<std::int64_t> types;
    for (std::uint64_t row = first; row < end; ++row)
      types.push_back(order.TypeOf(static_cast<Row>(row)));
    return EncodeCoordinateChunk(types, /*narrow=*/true, CoordinateChunkRows(rows));
  }
  return EncodeExternalIds(static_cast<Row>(first), vertices, ids, rows);
}

Status CheckCoordinates(
    const Manifest& manifest, const VertexOrder& order, const VertexIds& ids,
    const JobControl& control,
    const std::function<void(const std::string& file, const std::string& what)>& found) {
  const RowIds row_ids = RowIdsOf(ids);
  for (const Coordinate& coordinate : CoordinatesOf(manifest)) {
    const auto check = [&](const std::string& path, std::span<const std::byte> bytes) {
      const FileEntry* file = manifest.FindFile(path);
      if (file == nullptr || file->size_bytes != bytes.size() || file->xxh3 != Xxh3(bytes))
        found(path, "does not name the vertices of its rows");
    };
    const std::string text = EncodeCoordinateJson(coordinate, manifest.info);
    check(CoordinateJsonPath(coordinate), std::as_bytes(std::span(text)));
    for (std::uint64_t chunk = 0; chunk < CoordinateChunks(order.size()); ++chunk) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      RHIZOME_ASSIGN_OR_RETURN(const auto bytes,
                               EncodeCoordinate(coordinate, chunk, order, row_ids));
      check(CoordinateChunkPath(coordinate, chunk), bytes);
    }
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
