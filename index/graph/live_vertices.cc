#include "index/graph/live_vertices.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "index/delta/graph_parts.h"
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

// Returns a live vertex by binary search: deleted_[i] - i live vertices precede the deleted vertex
// i, so it precedes the live vertex at `place` if that number is at most `place`.
VertexId LiveVertices::At(std::uint64_t place) const {
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
  const auto below = std::lower_bound(deleted_.begin(), deleted_.end(), vertex) - deleted_.begin();
  return static_cast<std::uint64_t>(vertex) - static_cast<std::uint64_t>(below);
}

}  // namespace rhizome
