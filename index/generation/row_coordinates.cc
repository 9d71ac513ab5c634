// Coordinates: Zarr arrays with the vertex id and the external id of each row. RowIdsOf returns a
// source of external ids: a dictionary, a function, or texts on disk, which WindowOfTexts reads for
// a window of rows at a time. EncodeCoordinate encodes one chunk; CheckCoordinates compares its
// hash with the manifest.

#include "index/generation/row_coordinates.h"

#include <algorithm>
#include <limits>
#include <memory>
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

/// A window of consecutive rows with their texts. It has as many rows as fit in memory, but at
/// least the requested ones.
class WindowOfTexts {
 public:
  WindowOfTexts(const StringIds& ids, const VertexOrder& order, std::uint64_t memory_bytes)
      : ids_(ids), order_(order), memory_bytes_(memory_bytes) {}

  Status Read(Row first, std::uint64_t count, std::vector<ExternalId>& out) {
    const Row end = first + static_cast<Row>(count);
    if (first < first_ || end > end_) RHIZOME_RETURN_IF_ERROR(Load(first, count));
    for (Row row = first; row < end; ++row) {
      const std::uint64_t place = places_[static_cast<std::size_t>(row - first_)];
      out.emplace_back(texts_.substr(place, Length(order_.VertexAt(row))));
    }
    return Status::Ok();
  }

 private:
  std::uint64_t Length(VertexId vertex) const {
    const auto v = static_cast<std::size_t>(vertex);
    return ids_.offsets[v + 1] - ids_.offsets[v];
  }

  Status Load(Row first, std::uint64_t count) {
    first_ = end_ = first;
    places_.clear();
    std::uint64_t bytes = 0;
    for (const auto rows = static_cast<Row>(order_.size()); end_ < rows; ++end_) {
      const std::uint64_t length = Length(order_.VertexAt(end_));
      const bool asked = static_cast<std::uint64_t>(end_ - first) < count;
      if (!asked && bytes + length + 8 * places_.size() > memory_bytes_) break;
      places_.push_back(bytes);
      bytes += length;
    }
    texts_.assign(bytes, '\0');
    std::size_t vertex = 0;
    std::uint64_t begin = 0;  // offset of the piece in all texts
    return ids_.read_bytes([&](std::span<const std::byte> piece) {
      const std::uint64_t end = begin + piece.size();
      for (; vertex + 1 < ids_.offsets.size() && ids_.offsets[vertex] < end; ++vertex) {
        Copy(vertex, begin, piece);
        if (ids_.offsets[vertex + 1] > end) break;  // the next piece has the rest of the text
      }
      begin = end;
      return Status::Ok();
    });
  }

  /// Copies the part of a vertex's text that is in the piece. The piece begins at offset `begin` of
  /// all texts.
  void Copy(std::size_t vertex, std::uint64_t begin, std::span<const std::byte> piece) {
    const Row row = order_.RowOf(static_cast<VertexId>(vertex));
    if (row < first_ || row >= end_) return;
    const std::uint64_t from = std::max(ids_.offsets[vertex], begin);
    const std::uint64_t to = std::min(ids_.offsets[vertex + 1], begin + piece.size());
    if (from >= to) return;
    const std::uint64_t place = places_[static_cast<std::size_t>(row - first_)];
    std::copy_n(reinterpret_cast<const char*>(piece.data()) + (from - begin), to - from,
                texts_.data() + place + (from - ids_.offsets[vertex]));
  }

  const StringIds& ids_;
  const VertexOrder& order_;
  const std::uint64_t memory_bytes_;
  Row first_ = 0;
  Row end_ = 0;
  std::vector<std::uint64_t> places_;  // positions of the rows' texts in texts_
  std::string texts_;
};

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

RowIds RowIdsOf(const StringIds& ids, const VertexOrder& order, std::uint64_t memory_bytes) {
  auto window = std::make_shared<WindowOfTexts>(ids, order, memory_bytes);
  return {ExternalIdKind::kString, [](VertexId) { return false; },
          [window](Row first, std::span<const VertexId> vertices, std::vector<ExternalId>& out) {
            return window->Read(first, vertices.size(), out);
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
