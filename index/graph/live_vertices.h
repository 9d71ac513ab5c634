#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {
class Delta;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

/// The vertices that are not deleted, in the order of their ids. A file of rows without ids has its
/// rows in this order, whether it is written (export) or read (AddArray, AppendRows).
/// Memory: 8 bytes a deleted vertex.
/// Threads: const.
class LiveVertices {
 public:
  LiveVertices() = default;

  /// Of the vertices [0, bound), without `deleted`, which is sorted.
  LiveVertices(std::uint64_t bound, std::vector<VertexId> deleted)
      : bound_(bound), deleted_(std::move(deleted)) {}

  static LiveVertices Of(const GraphSnapshot& graph);

  /// Without the graph: reads the deleted vertices from the generation's dictionary, and leaves its
  /// ids on disk. Errors: kCorruption; kIoError.
  static Result<LiveVertices> Of(const Store& store, const Delta& delta);

  std::uint64_t count() const { return bound_ - deleted_.size(); }
  std::uint64_t deleted_count() const { return deleted_.size(); }

  /// The vertex at a place of [0, count()); the bound of the ids for count() itself.
  VertexId At(std::uint64_t place) const;

  /// How many live vertices have ids below `vertex`: the place of a live one.
  std::uint64_t PlaceOf(VertexId vertex) const;

 private:
  std::uint64_t bound_ = 0;
  std::vector<VertexId> deleted_;
};

}  // namespace rhizome
