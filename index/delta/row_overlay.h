#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rhizome/index/delta.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/row_reader.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// The rows of an array as a graph has them at one commit: what was put since the generation was
/// made, out of the catalogue; else the generation's row; else, of a vertex that is newer, what
/// FillMissingRows says. Ownership: borrows all of it.
struct RowOverlay {
  const Store& store;
  const GraphParts& parts;
  const Delta& delta;
  const ArrayEntry& array;

  /// Copies what was put and what is missing to its row of `out`, of vertices.size() rows, and adds
  /// to `targets` those that are to be read from the generation's files.
  /// Errors: kInvalidArgument, an id out of range; kCorruption; kIoError.
  Status Split(std::span<const VertexId> vertices, std::span<std::byte> out,
               std::vector<RowTarget>& targets) const;
};

/// Errors: kInvalidArgument, the array does not have a row for each vertex of the generation, or
/// `out_bytes` is not what `vertices` rows take.
Status CheckRowRequest(const ArrayEntry& array, const GenerationInfo& info, std::size_t vertices,
                       std::size_t out_bytes);

}  // namespace rhizome::inline internal
