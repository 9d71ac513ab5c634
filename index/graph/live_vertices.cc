#include "index/graph/live_vertices.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "index/delta/graph_parts.h"
#include "index/delta/type_facts.h"
#include "index/topology/type_rows.h"
#include "storage/array/array_facts.h"
#include "storage/base/mutant.h"

namespace rhizome {
namespace {

/// Merges the deleted vertices of the generation and of the delta; both are sorted and disjoint.
std::vector<VertexId> AllDeleted(std::span<const VertexId> of_generation, const Delta& delta) {
  const auto merged = delta.Merged();
  std::vector<VertexId> of_delta;
  if (merged != nullptr) of_delta = merged->deleted;
  if (RHIZOME_MUTANT("deleted vertices have rows once they are compacted")) return of_delta;
  std::vector<VertexId> all;
  std::set_union(of_generation.begin(), of_generation.end(), of_delta.begin(), of_delta.end(),
                 std::back_inserter(all));
  return all;
}

}  // namespace

LiveVertices LiveVertices::Of(const GraphSnapshot& graph) {
  const auto fixed = graph.Snapshot();
  const auto delta = fixed->delta();
  return {delta->vertices(), AllDeleted(fixed->parts()->ids.deleted(), *delta)};
}

Result<LiveVertices> LiveVertices::Of(const Store& store, const Delta& delta) {
  RHIZOME_ASSIGN_OR_RETURN(const auto of_generation, LoadDeletedVertices(store));
  return LiveVertices(delta.vertices(), AllDeleted(of_generation, delta));
}

LiveVertices LiveVertices::Of(const GraphSnapshot& graph, const ArrayEntry& array) {
  const auto fixed = graph.Snapshot();
  const auto delta = fixed->delta();
  const auto parts = fixed->parts();
  const auto type = TypeNamed(delta->vertex_types(), BoundType(array));
  if (!type) return Of(graph);
  return OfType(delta->vertices(), AllDeleted(parts->ids.deleted(), *delta), [&](VertexId vertex) {
    return TypeOfVertex(parts->order, *delta, vertex) == *type;
  });
}

Result<LiveVertices> LiveVertices::OfType(const Store& store, const Delta& delta,
                                          const VertexOrder& order, TypeId type) {
  RHIZOME_ASSIGN_OR_RETURN(const auto of_generation, LoadDeletedVertices(store));
  return OfType(delta.vertices(), AllDeleted(of_generation, delta),
                [&](VertexId vertex) { return TypeOfVertex(order, delta, vertex) == type; });
}

LiveVertices LiveVertices::OfType(std::uint64_t bound, const std::vector<VertexId>& deleted,
                                  const std::function<bool(VertexId)>& of_type) {
  LiveVertices live;
  live.bound_ = bound;
  live.of_type_ = true;
  auto gone = deleted.begin();
  for (std::uint64_t v = 0; v < bound; ++v) {
    const auto vertex = static_cast<VertexId>(v);
    const bool is_deleted = gone != deleted.end() && *gone == vertex;
    if (is_deleted) ++gone;
    if (!of_type(vertex)) continue;
    if (is_deleted)
      ++live.deleted_count_;
    else if (!live.runs_.empty() && live.runs_.back().end == v)
      ++live.runs_.back().end;
    else
      live.runs_.push_back({v, v + 1, live.count()});
  }
  return live;
}

std::uint64_t LiveVertices::count() const {
  if (!of_type_) return bound_ - deleted_.size();
  return runs_.empty() ? 0 : runs_.back().before + runs_.back().end - runs_.back().first;
}

// Returns a live vertex by binary search: deleted_[i] - i live vertices precede the deleted vertex
// i, so it precedes the live vertex at `place` if that number is at most `place`.
VertexId LiveVertices::At(std::uint64_t place) const {
  if (of_type_) {
    if (place >= count()) return static_cast<VertexId>(bound_);
    const auto after =
        std::upper_bound(runs_.begin(), runs_.end(), place,
                         [](std::uint64_t wanted, const Run& run) { return wanted < run.before; });
    return static_cast<VertexId>((after - 1)->first + place - (after - 1)->before);
  }
  std::uint64_t begin = 0;
  std::uint64_t end = deleted_.size();
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (static_cast<std::uint64_t>(deleted_[middle]) - middle <= place) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return static_cast<VertexId>(place + begin);
}

std::uint64_t LiveVertices::PlaceOf(VertexId vertex) const {
  if (of_type_) {
    const auto v = static_cast<std::uint64_t>(vertex);
    const auto after =
        std::lower_bound(runs_.begin(), runs_.end(), v,
                         [](const Run& run, std::uint64_t wanted) { return run.first < wanted; });
    if (after == runs_.begin()) return 0;
    const Run& run = *(after - 1);
    return run.before + std::min(v, run.end) - run.first;
  }
  const auto below = std::lower_bound(deleted_.begin(), deleted_.end(), vertex) - deleted_.begin();
  return static_cast<std::uint64_t>(vertex) - static_cast<std::uint64_t>(below);
}

}  // namespace rhizome
