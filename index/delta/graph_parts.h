#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/delta/delta.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_ids.h"
#include "index/topology/vertex_order.h"
#include "rhizome/export.h"
#include "rhizome/graph_types.h"
#include "rhizome/store.h"
#include "storage/array/array_facts.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

class OpenArrays;

// Load and verify the files of a generation, and compare them with the graph's description in the
// manifest.
// Errors: kCorruption, naming the file; kIoError.
Result<VertexOrder> LoadOrder(const Store& store, TopologyPlace place = TopologyPlace::kMemory);
Result<VertexIds> LoadVertexIds(const Store& store, TopologyPlace place = TopologyPlace::kMemory);
/// Returns the deleted vertices, sorted, without reading the ids.
Result<std::vector<VertexId>> LoadDeletedVertices(const Store& store);
Result<Adjacency> LoadPartition(const Store& store, const VertexOrder& order,
                                std::uint32_t partition,
                                TopologyPlace place = TopologyPlace::kMemory);
/// Loads only the header (Adjacency::ParseHeader).
Result<Adjacency> LoadPartitionHeader(const Store& store, const VertexOrder& order,
                                      std::uint32_t partition, TopologyPlace place);

/// Returns the number of deleted vertices of the generation, which keep their ids and rows. Reads
/// only a header.
Result<std::uint64_t> CountDeletedVertices(const Store& store);

/// Returns the attributes of edges, from the arrays of partition 0: each attribute has one array
/// for every partition.
std::vector<EdgeAttributeInfo> EdgeAttributesOf(const Manifest& manifest);

/// Returns the number of values of an edge over all its attributes. Load fails above
/// kMaxEdgeValues.
std::uint64_t EdgeValueCount(std::span<const EdgeAttributeInfo> attributes);
inline constexpr std::uint64_t kMaxEdgeValues = std::uint64_t{1} << 16;

/// A generation in memory, shared by Graph and its readers.
/// Threads: const after Load.
struct GraphParts {
  static Result<std::shared_ptr<const GraphParts>> Load(std::shared_ptr<const Store> store,
                                                        const GraphOptions& options);

  /// A snapshot at the generation (Store::SnapshotOfGraph); a later snapshot may have more arrays.
  std::shared_ptr<const Store> store;
  GraphOptions options;
  std::shared_ptr<BlockCache> list_cache;  ///< for lists on disk; null: none
  std::shared_ptr<OpenArrays> arrays;      ///< the arrays whose rows were read
  VertexOrder order;
  VertexIds ids;
  std::vector<Adjacency> partitions;  ///< all; only headers if not in options.partitions
  std::vector<EdgeAttributeInfo> edge_attributes;

  const GenerationInfo& info() const { return store->manifest().info; }

  /// Returns the base of a delta without commits.
  Delta::Base DeltaBase() const;

  /// Returns the row of a vertex, old or new: the rows of new vertices follow the last row of the
  /// generation, in the order of their ids (docs/DESIGN.md, section 6).
  Row RowOf(VertexId vertex) const {
    return static_cast<std::uint64_t>(vertex) < order.size() ? order.RowOf(vertex) : vertex;
  }
  VertexId VertexAt(Row row) const {
    return static_cast<std::uint64_t>(row) < order.size() ? order.VertexAt(row) : row;
  }

  /// Check that a partition is loaded; that all are; and that all are, and not lazily
  /// (TopologyPlace::kLazy). `what` names the operation that needs them.
  /// Errors: kInvalidArgument, naming the first partition that is not loaded
  /// (GraphOptions::partitions), or the place.
  Status CheckLoaded(PartitionId partition, std::string_view what) const {
    return partitions[partition].loaded() ? Status::Ok() : NotLoaded(partition, what);
  }
  Status CheckComplete(std::string_view what) const;
  Status CheckWhole(std::string_view what) const;

  /// Checks that the store keeps the lists of a direction.
  /// Errors: kInvalidArgument.
  Status CheckDirection(Direction direction) const;

  /// Converts an external id to the store's kind: an integer may be given as its canonical text,
  /// and a canonical decimal text as the integer. Returns nullopt if the store cannot have such an
  /// id.
  std::optional<ExternalId> OwnKind(const ExternalId& id) const;

  /// Returns the vertex with an external id, unless it is deleted.
  std::optional<VertexId> Find(const ExternalId& id, const Delta& delta) const;

  /// Returns the error for a row of `owner` that `partition` lacks: kCorruption.
  Status MissingRow(Row row, PartitionId owner, PartitionId partition) const;

  /// Calls visit(partition, local id) for each partition that has edges of a row of the generation,
  /// its owner first.
  /// Errors: kInvalidArgument, one of them is not loaded; kCorruption, partitions contradict each
  /// other; any error of `visit`.
  template <typename Visit>
  Status ForEachPart(Row row, Visit&& visit) const {
    const PartitionId owner = order.OwnerOf(row);
    if (!partitions[owner].loaded()) return NotLoaded(owner, kListOfRow, row);
    const auto local = partitions[owner].Find(row);
    if (!local) return MissingRow(row, owner, owner);
    RHIZOME_RETURN_IF_ERROR(visit(owner, *local));
    const auto set = partitions[owner].PartitionSet(*local);
    for (std::uint32_t p = 0; p < set.size() * 8; ++p) {
      if (p == owner || (set[p / 8] >> (p % 8) & 1) == 0) continue;
      if (!partitions[p].loaded()) return NotLoaded(static_cast<PartitionId>(p), kListOfRow, row);
      const auto mirror = partitions[p].Find(row);
      if (!mirror) return MissingRow(row, owner, static_cast<PartitionId>(p));
      RHIZOME_RETURN_IF_ERROR(visit(static_cast<PartitionId>(p), *mirror));
    }
    return Status::Ok();
  }

 private:
  static constexpr std::string_view kListOfRow = "the list of row";
  Status NotLoaded(PartitionId partition, std::string_view what,
                   std::optional<Row> row = std::nullopt) const;
};

}  // namespace internal
}  // namespace rhizome
