#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {
class Delta;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

/// The vertices that are not deleted, in the order of their ids. This is the order of rows in a
/// file without ids, both when it is written (export) and when it is read (AddArray, AppendRows).
/// Memory: 8 bytes a deleted vertex.
/// Threads: const.
class LiveVertices {
 public:
  LiveVertices() = default;

  /// The vertices [0, bound) without `deleted`, which must be sorted.
  LiveVertices(std::uint64_t bound, std::vector<VertexId> deleted)
      : bound_(bound), deleted_(std::move(deleted)) {}

  static LiveVertices Of(const GraphSnapshot& graph);

  /// Works without a graph: reads the deleted vertices from the generation's dictionary and leaves
  /// the ids on disk.
  /// Errors: kCorruption; kIoError.
  static Result<LiveVertices> Of(const Store& store, const Delta& delta);

  std::uint64_t count() const { return bound_ - deleted_.size(); }
  std::uint64_t deleted_count() const { return deleted_.size(); }

  /// Returns the vertex at a position in [0, count()]; for count(), the bound of ids.
  VertexId At(std::uint64_t place) const;

  /// Returns the number of live vertices with ids below `vertex`, which is the position of a live
  /// vertex.
  std::uint64_t PlaceOf(VertexId vertex) const;

 private:
  std::uint64_t bound_ = 0;
  std::vector<VertexId> deleted_;
};

}  // namespace rhizome
