#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {
class Delta;
class VertexOrder;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

/// The vertices that are not deleted, in the order of their ids: all, or all of one type. This is
/// the order of rows in a file without ids, both when it is written (export) and when it is read
/// (AddArray, AppendRows).
/// Memory: 8 bytes a deleted vertex; of one type, 24 bytes for each run of consecutive ids.
/// Threads: const.
class LiveVertices {
 public:
  LiveVertices() = default;

  /// The vertices [0, bound) without `deleted`, which must be sorted.
  LiveVertices(std::uint64_t bound, std::vector<VertexId> deleted)
      : bound_(bound), deleted_count_(deleted.size()), deleted_(std::move(deleted)) {}

  static LiveVertices Of(const GraphSnapshot& graph);

  /// Works without a graph: reads the deleted vertices from the generation's dictionary and leaves
  /// the ids on disk.
  /// Errors: kCorruption; kIoError.
  static Result<LiveVertices> Of(const Store& store, const Delta& delta);

  /// The vertices that may have rows in a vertex array: if it is bound to a type, only vertices of
  /// this type.
  static LiveVertices Of(const GraphSnapshot& graph, const ArrayEntry& array);

  /// The vertices of one type, without a graph. Errors: kCorruption; kIoError.
  static Result<LiveVertices> OfType(const Store& store, const Delta& delta,
                                     const internal::VertexOrder& order, TypeId type);

  std::uint64_t count() const;
  std::uint64_t deleted_count() const { return deleted_count_; }

  /// Returns the vertex at a position in [0, count()]; for count(), the bound of ids.
  VertexId At(std::uint64_t place) const;

  /// Returns the number of live vertices with ids below `vertex`, which is the position of a live
  /// vertex.
  std::uint64_t PlaceOf(VertexId vertex) const;

 private:
  /// Consecutive ids of live vertices of the type.
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t before = 0;  // vertices of earlier runs
  };
  static LiveVertices OfType(std::uint64_t bound, const std::vector<VertexId>& deleted,
                             const std::function<bool(VertexId)>& of_type);

  std::uint64_t bound_ = 0;
  std::uint64_t deleted_count_ = 0;  // of the type
  std::vector<VertexId> deleted_;    // unless of one type
  bool of_type_ = false;
  std::vector<Run> runs_;  // if of one type
};

}  // namespace rhizome
