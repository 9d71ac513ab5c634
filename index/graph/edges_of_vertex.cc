#include "index/graph/edges_of_vertex.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph_lookup.h"
#include "storage/base/exceptions.h"

namespace rhizome {
namespace {

using Visitor = std::function<Status(const EdgeOfVertex& edge)>;

/// The entries of one list of a vertex: the generation's entries that are not erased, and the
/// delta's entries.
class ListOfVertex {
 public:
  ListOfVertex(const GraphSnapshot& graph, VertexId vertex, Direction list)
      : parts_(graph.parts()),
        delta_(graph.delta()),
        numbers_(graph),
        vertex_(vertex),
        list_(list),
        touched_(delta_->Touches(vertex, list)),
        merged_(touched_ ? delta_->Merged() : nullptr) {
    if (touched_) changes_ = merged_->ListOf(vertex, list, delta_->symmetric());
  }

  Status Visit(std::optional<TypeId> type, const Visitor& visit) const {
    if (delta_->IsDeleted(vertex_)) return Status::Ok();
    if (in_generation())
      RHIZOME_RETURN_IF_ERROR(ForEachPart(
          [&](PartitionId p, LocalId local) { return VisitPart(p, local, type, visit); }));
    return VisitWritten(type, visit);
  }

  Status Count(std::map<TypeId, std::uint64_t>& counts) const {
    if (touched_ || !in_generation())
      return Visit(std::nullopt, [&](const EdgeOfVertex& edge) {
        ++counts[edge.neighbor.type];
        return Status::Ok();
      });
    return ForEachPart([&](PartitionId p, LocalId local) -> Status {
      const Adjacency& partition = parts_->partitions[p];
      RHIZOME_RETURN_IF_ERROR(partition.CheckEntries(local, list_));
      const std::uint64_t all = partition.Entries(local, list_).count;
      for (std::uint64_t i = 0; i < all;) {
        const TypeId type = partition.TypeOfEntry(local, list_, i);
        const std::uint64_t count = partition.EntriesOfType(local, list_, type).count;
        counts[type] += count;
        i += count;
      }
      return Status::Ok();
    });
  }

 private:
  bool in_generation() const { return static_cast<std::uint64_t>(vertex_) < parts_->order.size(); }

  template <typename Each>
  Status ForEachPart(Each&& each) const {
    return parts_->ForEachPart(parts_->order.RowOf(vertex_), each);
  }

  bool Erased(VertexId neighbor, TypeId type) const {
    if (!touched_) return false;
    const DeltaEdge key{.vertex = vertex_, .neighbor = neighbor, .type = type};
    // The tombstone of a key precedes the edges that were added after it.
    const auto first = std::lower_bound(changes_.begin(), changes_.end(), key, KeyLess);
    const bool erased = first != changes_.end() && !KeyLess(key, *first) && first->erase;
    return erased || delta_->IsDeleted(neighbor);
  }

  Status VisitPart(PartitionId p, LocalId local, std::optional<TypeId> wanted,
                   const Visitor& visit) const {
    const Adjacency& partition = parts_->partitions[p];
    std::vector<LocalId> scratch;
    RHIZOME_ASSIGN_OR_RETURN(const auto list, partition.FetchList(local, list_, scratch));
    const std::uint64_t list_first = partition.Entries(local, list_).first;
    const bool numbered = partition.has_edge_ids(list_);
    for (std::uint64_t i = 0; i < list.size();) {
      const TypeId type = wanted ? *wanted : partition.TypeOfEntry(local, list_, i);
      const Adjacency::Range range = partition.EntriesOfType(local, list_, type);
      for (std::uint64_t at = range.first; at < range.first + range.count; ++at) {
        const VertexId neighbor = parts_->order.VertexAt(partition.RowOf(list[at - list_first]));
        if (Erased(neighbor, type)) continue;
        EdgeOfVertex edge{{neighbor, type, partition.Weight(list_, at)}, list_, std::nullopt};
        if (numbered) edge.edge = numbers_.Of({p, partition.EdgeAt(list_, at)});
        RHIZOME_RETURN_IF_ERROR(visit(edge));
      }
      if (wanted) break;
      i += range.count;
    }
    return Status::Ok();
  }

  Status VisitWritten(std::optional<TypeId> wanted, const Visitor& visit) const {
    const auto partition = static_cast<PartitionId>(parts_->partitions.size());
    for (const DeltaEdge& edge : changes_) {
      if (edge.erase || (wanted && edge.type != *wanted) || delta_->IsDeleted(edge.neighbor))
        continue;
      RHIZOME_RETURN_IF_ERROR(
          visit({{edge.neighbor, edge.type, parts_->info().weighted ? edge.weight : 1},
                 list_,
                 numbers_.Of({partition, edge.number})}));
    }
    return Status::Ok();
  }

  const std::shared_ptr<const GraphParts> parts_;
  const std::shared_ptr<const Delta> delta_;
  const EdgeNumbering numbers_;
  const VertexId vertex_;
  const Direction list_;
  const bool touched_;  // by the delta
  const std::shared_ptr<const DeltaRun> merged_;
  std::span<const DeltaEdge> changes_;
};

/// Returns the lists that a direction means.
std::vector<Direction> ListsOf(const GraphSnapshot& graph, Direction direction) {
  if (direction != Direction::kBoth) return {direction};
  if (graph.info().symmetric) return {Direction::kOut};
  return {Direction::kOut, Direction::kIn};
}

Status CheckVertex(const GraphSnapshot& graph, VertexId vertex) {
  const std::uint64_t vertices = graph.vertex_count();
  if (vertex >= 0 && static_cast<std::uint64_t>(vertex) < vertices) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("there is no vertex {}: the graph has {} vertices", vertex, vertices));
}

}  // namespace

Status VisitEdgesOf(const GraphSnapshot& graph, VertexId vertex, Direction direction,
                    std::optional<TypeId> type, const Visitor& visit) {
  return Guarded([&]() -> Status {
    RHIZOME_RETURN_IF_ERROR(CheckVertex(graph, vertex));
    RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckDirection(direction));
    for (const Direction list : ListsOf(graph, direction))
      RHIZOME_RETURN_IF_ERROR(ListOfVertex(graph, vertex, list).Visit(type, visit));
    return Status::Ok();
  });
}

Result<std::vector<TypeDegree>> CountEdgesOf(const GraphSnapshot& graph, VertexId vertex,
                                             Direction direction) {
  return Guarded([&]() -> Result<std::vector<TypeDegree>> {
    RHIZOME_RETURN_IF_ERROR(CheckVertex(graph, vertex));
    const GraphParts& parts = *graph.parts();
    if (direction != Direction::kBoth) RHIZOME_RETURN_IF_ERROR(parts.CheckDirection(direction));
    std::vector<TypeDegree> degrees;
    for (const Direction list : ListsOf(graph, direction)) {
      if (!parts.partitions.front().has(list)) continue;
      std::map<TypeId, std::uint64_t> counts;
      RHIZOME_RETURN_IF_ERROR(ListOfVertex(graph, vertex, list).Count(counts));
      for (const auto& [type, count] : counts) degrees.push_back({list, type, count});
    }
    return degrees;
  });
}

}  // namespace rhizome
