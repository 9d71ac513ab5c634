#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cache/feed/feature_decoder.h"
#include "index/graph/delta_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The rows of an array of vertices, as floats, as of a commit: rows that were put since the
/// generation and rows of new vertices are part of it.
/// Threads: const.
struct LinkTable {
  std::shared_ptr<const GraphSnapshot> graph;
  std::shared_ptr<const ChunkArray> array;
  FeatureDecoder decoder;
  std::shared_ptr<const DeltaRows> delta;  ///< null: all rows are in the array
  bool published = true;                   ///< the array is one of the store

  /// Errors: kNotFound, no such array; kInvalidArgument, the array is not of vertices, or holds
  /// texts or times; kCorruption; kIoError.
  static Result<LinkTable> Open(const GraphSnapshot& graph, const std::string& name);

  /// Returns the table of an array [vertices, columns] that is not in the store; borrows it.
  /// Errors: as Open.
  static Result<LinkTable> OfRows(const GraphSnapshot& graph, const ChunkArray& rows);

  const ArrayEntry& entry() const { return array->entry(); }
  std::uint64_t dim() const { return decoder.dim(); }
  std::uint64_t rows() const { return graph->vertex_count(); }
  std::uint64_t chunks() const { return (rows() + entry().chunk_rows - 1) / entry().chunk_rows; }
};

}  // namespace internal
}  // namespace rhizome
