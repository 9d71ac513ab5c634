#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/index/external_id.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// What a delta says of one list: an edge that was added, or that all older edges of the same
/// (vertex, type, neighbour) are gone.
struct DeltaEdge {
  VertexId vertex = 0;    ///< whose list
  VertexId neighbor = 0;  ///< the other end
  TypeId type = 0;
  bool erase = false;
  float weight = 1;
  std::uint32_t attributes = 0;  ///< which row of DeltaRun::attributes
};

/// Order of a run's lists: by (vertex, type, neighbour).
inline bool KeyLess(const DeltaEdge& a, const DeltaEdge& b) {
  if (a.vertex != b.vertex) return a.vertex < b.vertex;
  if (a.type != b.type) return a.type < b.type;
  return a.neighbor < b.neighbor;
}

/// That commit `sequence` put the row of `vertex` in an array.
struct DeltaRowRef {
  std::uint64_t array_id = 0;
  VertexId vertex = 0;
  std::uint64_t sequence = 0;
};

/// What one commit, or a row of commits one after another, changed. A store's delta is a few runs,
/// the later ones over the earlier (delta.h). Everything is sorted, so that a vertex is found by
/// binary search and two runs are merged in one pass.
/// Memory: 32 bytes an edge and direction, 24 a row, and the new vertices' ids.
/// Threads: const after it is built.
struct DeltaRun {
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;

  /// By KeyLess; of one key the erasing entry first, then what was added after it. A symmetric
  /// store's pairs stand in `out` from both ends, and `in` is empty.
  std::vector<DeltaEdge> out;
  std::vector<DeltaEdge> in;

  /// Values of edge attributes: row i at [i * attribute_count, ...).
  std::uint32_t attribute_count = 0;
  std::vector<std::int64_t> attributes;

  /// Vertices [first_vertex, first_vertex + vertex_types.size()) are new.
  VertexId first_vertex = 0;
  std::vector<TypeId> vertex_types;
  std::vector<ExternalId> vertex_ids;
  std::vector<std::uint32_t> ids_sorted;  ///< indices of vertex_ids, by (id, index)

  std::vector<VertexId> deleted;            ///< sorted
  std::vector<DeltaRowRef> rows;            ///< by (array, vertex), each once
  std::vector<std::string> new_edge_types;  ///< names, in order of their numbers
  std::vector<std::string> new_vertex_types;

  /// Entries, as info counts them: edges (a pair of a symmetric store twice), erasures, vertices
  /// and rows.
  std::uint64_t size() const {
    return out.size() + vertex_types.size() + deleted.size() + rows.size() + new_edge_types.size() +
           new_vertex_types.size();
  }

  const std::vector<DeltaEdge>& list(Direction direction, bool symmetric) const {
    return direction == Direction::kOut || symmetric ? out : in;
  }
  std::span<const DeltaEdge> ListOf(VertexId vertex, Direction direction, bool symmetric) const;
  bool IsDeleted(VertexId vertex) const;

  /// The newest of its vertices with that external id.
  std::optional<VertexId> Find(const ExternalId& id) const;
  const DeltaRowRef* FindRow(std::uint64_t array_id, VertexId vertex) const;
};

/// Both runs as one; `newer` follows `older` directly.
std::shared_ptr<const DeltaRun> MergeRuns(const DeltaRun& older, const DeltaRun& newer);

/// Collects changes in the order they were made, and sorts them into a run.
class DeltaRunBuilder {
 public:
  DeltaRunBuilder(bool symmetric, std::uint32_t attribute_count, VertexId first_vertex);

  /// `attributes`: attribute_count values, or none for zeros.
  void AddEdge(VertexId src, VertexId dst, TypeId type, float weight,
               std::span<const std::int64_t> attributes);
  void EraseEdges(VertexId src, VertexId dst, TypeId type);
  VertexId AddVertex(ExternalId id, TypeId type);
  void DeleteVertex(VertexId vertex) { run_.deleted.push_back(vertex); }
  void PutRow(std::uint64_t array_id, VertexId vertex) {
    run_.rows.push_back({array_id, vertex, 0});
  }
  void AddEdgeType(std::string name) { run_.new_edge_types.push_back(std::move(name)); }
  void AddVertexType(std::string name) { run_.new_vertex_types.push_back(std::move(name)); }

  /// What was added so far, unsorted.
  const DeltaRun& pending() const { return run_; }

  /// The run of commit `sequence`. The builder is empty afterwards.
  DeltaRun Finish(std::uint64_t sequence);

 private:
  const bool symmetric_;
  DeltaRun run_;
};

}  // namespace rhizome::inline internal
