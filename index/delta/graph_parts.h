#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/delta.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/index/vertex_ids.h"
#include "rhizome/index/vertex_order.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/store.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

class OpenArrays;

// The files of a generation, loaded, verified and compared with what the manifest says of the
// graph. Errors: kCorruption naming the file; kIoError.
Result<VertexOrder> LoadOrder(const Store& store);
Result<VertexIds> LoadVertexIds(const Store& store);
Result<std::vector<VertexId>> LoadDeletedVertices(const Store& store);  ///< sorted; no ids are read
Result<Adjacency> LoadPartition(const Store& store, const VertexOrder& order,
                                std::uint32_t partition,
                                TopologyPlace place = TopologyPlace::kMemory);

/// How many vertices of the generation were deleted: they keep their ids and rows. Reads a header.
Result<std::uint64_t> CountDeletedVertices(const Store& store);

/// What edges carry, as the arrays of partition 0 tell: each attribute has an array for every one.
std::vector<EdgeAttributeInfo> EdgeAttributesOf(const Manifest& manifest);

/// How many values an edge has in all its attributes. Beyond the most, Load fails.
std::uint64_t EdgeValueCount(std::span<const EdgeAttributeInfo> attributes);
inline constexpr std::uint64_t kMaxEdgeValues = std::uint64_t{1} << 16;

/// A generation in memory, as Graph and whatever reads beside it hold it together.
/// Threads: const after Load.
struct GraphParts {
  static Result<std::shared_ptr<const GraphParts>> Load(std::shared_ptr<const Store> store,
                                                        const GraphOptions& options);

  /// A snapshot at the generation; of its arrays a later one may know more.
  std::shared_ptr<const Store> store;
  GraphOptions options;
  std::shared_ptr<BlockCache> list_cache;  ///< of lists on disk; null: none
  std::shared_ptr<OpenArrays> arrays;      ///< that rows were read of
  VertexOrder order;
  VertexIds ids;
  std::vector<Adjacency> partitions;
  std::vector<EdgeAttributeInfo> edge_attributes;

  const GenerationInfo& info() const { return store->manifest().info; }

  /// What a delta without commits begins with.
  Delta::Base DeltaBase() const;

  /// The row of a vertex, old or new: new ones have the rows behind the last, in the order of their
  /// ids (DESIGN section 6).
  Row RowOf(VertexId vertex) const {
    return static_cast<std::uint64_t>(vertex) < order.size() ? order.RowOf(vertex) : vertex;
  }
  VertexId VertexAt(Row row) const {
    return static_cast<std::uint64_t>(row) < order.size() ? order.VertexAt(row) : row;
  }

  /// An external id as the store keeps it: an integer may be given as its canonical text, and text
  /// that is one as the integer. Nothing if the store cannot have such an id.
  std::optional<ExternalId> OwnKind(const ExternalId& id) const;

  /// The vertex with an external id, which was not deleted.
  std::optional<VertexId> Find(const ExternalId& id, const Delta& delta) const;

  /// Calls visit(partition, local id) for each partition that has edges of a row of the generation,
  /// its owner first. Errors: kCorruption, partitions contradict each other; the visitor's.
  template <typename Visit>
  Status ForEachPart(Row row, Visit&& visit) const {
    const PartitionId owner = order.OwnerOf(row);
    const auto local = partitions[owner].Find(row);
    if (!local) return MissingRow(row, owner, owner);
    RHIZOME_RETURN_IF_ERROR(visit(owner, *local));
    const auto set = partitions[owner].PartitionSet(*local);
    for (std::uint32_t p = 0; p < set.size() * 8; ++p) {
      if (p == owner || (set[p / 8] >> (p % 8) & 1) == 0) continue;
      const auto mirror = partitions[p].Find(row);
      if (!mirror) return MissingRow(row, owner, static_cast<PartitionId>(p));
      RHIZOME_RETURN_IF_ERROR(visit(static_cast<PartitionId>(p), *mirror));
    }
    return Status::Ok();
  }

 private:
  Status MissingRow(Row row, PartitionId owner, PartitionId partition) const;
};

}  // namespace internal
}  // namespace rhizome
