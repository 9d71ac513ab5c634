#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "index/generation/id_spool.h"
#include "index/topology/vertex_ids.h"
#include "index/topology/vertex_order.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "storage/array/coordinates.h"

namespace rhizome {
inline namespace internal {

/// A source of the external ids of a generation, in memory or on disk.
struct RowIds {
  ExternalIdKind kind = ExternalIdKind::kDense;
  std::function<bool(VertexId)> is_deleted;

  /// Appends the ids of the vertices at rows [first, first + vertices.size()) to `ids`. If the ids
  /// are not in memory, calls must proceed chunk by chunk from the first row. Not called for dense
  /// ids.
  std::function<Status(Row first, std::span<const VertexId> vertices, std::vector<ExternalId>& ids)>
      read;
};

/// Returns the ids of a dictionary, which must outlive the result.
RowIds RowIdsOf(const VertexIds& ids);

/// Returns ids that `id_of` computes one by one.
RowIds RowIdsOf(ExternalIdKind kind, std::function<bool(VertexId)> is_deleted,
                std::function<ExternalId(VertexId)> id_of);

/// Returns ids that were stored by row.
/// Errors: any error of opening the file.
Result<RowIds> RowIdsOf(ExternalIdKind kind, IdSpool by_row);

/// Returns the bytes of one chunk of a coordinate (storage/array/coordinates.h).
/// Errors: any error of reading ids.
Result<std::vector<std::byte>> EncodeCoordinate(const Coordinate& coordinate, std::uint64_t chunk,
                                                const VertexOrder& order, const RowIds& ids);

/// Calls found(file, what) for each file of the generation's coordinates that does not match order
/// and ids. It compares with the hashes in the manifest and reads no file: another check compares
/// the files with the manifest.
/// Errors: kInterrupted.
Status CheckCoordinates(
    const Manifest& manifest, const VertexOrder& order, const VertexIds& ids,
    const JobControl& control,
    const std::function<void(const std::string& file, const std::string& what)>& found);

}  // namespace internal
}  // namespace rhizome
