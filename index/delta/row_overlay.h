#pragma once

#include <cstddef>
#include <span>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "storage/array/row_reader.h"

namespace rhizome {
inline namespace internal {

/// The rows of an array at one commit of a graph. A row comes from the catalogue if it was put
/// after the generation was created; otherwise from the generation; for a newer vertex, from
/// FillMissingRows.
/// Ownership: borrows all members.
struct RowOverlay {
  const Store& store;
  const GraphParts& parts;
  const Delta& delta;
  const ArrayEntry& array;

  /// Copies rows from the catalogue and missing rows to `out`, shape [vertices.size(), row bytes].
  /// Puts the rows that must be read from the generation's files at the front of `targets`, which
  /// must have the size of `vertices`, and returns their number.
  /// Errors: kInvalidArgument, an id out of range, or a vertex of another type than the one that
  /// the array is bound to; kCorruption; kIoError.
  Result<std::size_t> Split(std::span<const VertexId> vertices, std::span<std::byte> out,
                            std::span<RowTarget> targets) const;

 private:
  TypeId TypeOf(VertexId vertex) const;
  Status OtherType(VertexId vertex) const;
};

/// Checks a request for rows.
/// Errors: kInvalidArgument, the array does not have one row for each vertex of the generation, or
/// `out_bytes` does not fit `vertices` rows.
Status CheckRowRequest(const ArrayEntry& array, const GenerationInfo& info, std::size_t vertices,
                       std::size_t out_bytes);

}  // namespace internal
}  // namespace rhizome
