#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/external_id.h"
#include "rhizome/index/vertex_ids.h"
#include "rhizome/index/vertex_order.h"
#include "rhizome/storage/coordinates.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The external ids of a generation, wherever they are.
struct RowIds {
  ExternalIdKind kind = ExternalIdKind::kDense;
  std::function<bool(VertexId)> is_deleted;

  /// Adds the ids of the vertices at rows [first, first + vertices.size()) to `ids`. Chunk by
  /// chunk, from the first row on, where they are not in memory. Not asked of dense ids.
  std::function<Status(Row first, std::span<const VertexId> vertices, std::vector<ExternalId>& ids)>
      read;
};

/// Those of a dictionary, which must outlive them.
RowIds RowIdsOf(const VertexIds& ids);

/// Those that `id_of` gives one by one.
RowIds RowIdsOf(ExternalIdKind kind, std::function<bool(VertexId)> is_deleted,
                std::function<ExternalId(VertexId)> id_of);

/// String ids that are not in memory, which are read from front to back once for as many rows as
/// fit in `memory_bytes`. `ids` and `order` must outlive them.
RowIds RowIdsOf(const StringIds& ids, const VertexOrder& order, std::uint64_t memory_bytes);

/// The bytes of one chunk of a coordinate (storage/coordinates.h). Errors: those of reading ids.
Result<std::vector<std::byte>> EncodeCoordinate(const Coordinate& coordinate, std::uint64_t chunk,
                                                const VertexOrder& order, const RowIds& ids);

/// Says of each file of the generation's coordinates that is not what follows from order and ids
/// what is wrong with it. By the manifest alone: who compares files with it has read them. Errors:
/// kInterrupted.
Status CheckCoordinates(
    const Manifest& manifest, const VertexOrder& order, const VertexIds& ids,
    const JobControl& control,
    const std::function<void(const std::string& file, const std::string& what)>& found);

}  // namespace rhizome::inline internal
