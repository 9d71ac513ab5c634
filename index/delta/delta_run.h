#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "index/delta/delta_texts.h"
#include "rhizome/graph_types.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// An entry of a delta's list: an added edge, or a tombstone, which erases all older edges of the
/// same (vertex, type, neighbour).
struct DeltaEdge {
  VertexId vertex = 0;    ///< the vertex that owns the list
  VertexId neighbor = 0;  ///< the other end
  TypeId type = 0;
  bool erase = false;  // true for a tombstone
  float weight = 1;
  /// Number of the edge within the run; a row of DeltaRun::attributes. Both entries of an edge (in
  /// the out-list and the in-list, or at both ends of a symmetric pair) have the same number.
  std::uint32_t number = 0;
};

/// The order of a run's lists: by (vertex, type, neighbour).
inline bool KeyLess(const DeltaEdge& a, const DeltaEdge& b) {
  if (a.vertex != b.vertex) return a.vertex < b.vertex;
  if (a.type != b.type) return a.type < b.type;
  return a.neighbor < b.neighbor;
}

/// Records that commit `sequence` put the row of `vertex` in an array.
struct DeltaRowRef {
  std::uint64_t array_id = 0;
  VertexId vertex = 0;
  std::uint64_t sequence = 0;
};

/// The changes of one commit, or of consecutive commits. A store's delta consists of a few runs;
/// later runs override earlier ones (delta.h). Everything is sorted, so that a vertex is found by
/// binary search and two runs are merged in one pass.
/// Memory: 32 bytes an edge and direction, 24 a row, and the new vertices' ids.
/// Threads: const after it is built.
struct DeltaRun {
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;

  /// The state of the store after the last commit; unknown for records of version 1.
  HistoryState state = {};

  /// Sorted by KeyLess. For one key, the tombstone comes first, followed by the edges added after
  /// it. In a symmetric store, `out` has each pair from both ends, and `in` is empty.
  std::vector<DeltaEdge> out;
  std::vector<DeltaEdge> in;

  /// Edges have numbers in [0, numbered), commit by commit, and within a commit in the order of
  /// `out`. Numbers of edges that a later commit of the run erased are unused.
  std::uint32_t numbered = 0;

  /// Values of edge attributes: the values of edge i begin at [i * attribute_count].
  std::uint32_t attribute_count = 0;
  std::vector<std::int64_t> attributes;

  /// The vertices [first_vertex, first_vertex + vertex_types.size()) are new.
  VertexId first_vertex = 0;
  std::vector<TypeId> vertex_types;
  std::vector<ExternalId> vertex_ids;
  std::vector<std::uint32_t> ids_sorted;  ///< indices of vertex_ids, by (id, index)

  std::vector<VertexId> deleted;            ///< sorted
  std::vector<DeltaRowRef> rows;            ///< by (array, vertex), each once
  std::vector<std::string> new_edge_types;  ///< names, in order of their numbers
  std::vector<std::string> new_vertex_types;
  std::vector<DeltaTexts> texts;  ///< by dictionary

  /// Returns the number of entries, as `info` counts them: edges (a pair of a symmetric store
  /// twice), tombstones, vertices, rows and texts.
  std::uint64_t size() const {
    std::uint64_t entries = out.size() + vertex_types.size() + deleted.size() + rows.size() +
                            new_edge_types.size() + new_vertex_types.size();
    for (const DeltaTexts& added : texts) entries += added.texts.size();
    return entries;
  }

  const std::vector<DeltaEdge>& list(Direction direction, bool symmetric) const {
    return direction == Direction::kOut || symmetric ? out : in;
  }
  std::span<const DeltaEdge> ListOf(VertexId vertex, Direction direction, bool symmetric) const;
  bool IsDeleted(VertexId vertex) const;

  /// Returns the newest of its vertices with that external id.
  std::optional<VertexId> Find(const ExternalId& id) const;
  const DeltaRowRef* FindRow(std::uint64_t array_id, VertexId vertex) const;
};

/// Merges two runs; `newer` must follow `older` directly.
std::shared_ptr<const DeltaRun> MergeRuns(const DeltaRun& older, const DeltaRun& newer);

/// Collects changes in the order of the operations, and sorts them into a run.
class DeltaRunBuilder {
 public:
  DeltaRunBuilder(bool symmetric, std::uint32_t attribute_count, VertexId first_vertex);

  /// `attributes` has attribute_count values, or is empty for zeros.
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

  /// Adds a text with its code, which must follow the code that was added to this dictionary last.
  void AddText(TextsId dictionary, std::int64_t code, std::string text);

  /// Returns the changes so far, unsorted.
  const DeltaRun& pending() const { return run_; }

  /// Returns the run of commit `sequence` and empties the builder.
  DeltaRun Finish(std::uint64_t sequence);

 private:
  const bool symmetric_;
  DeltaRun run_;
};

}  // namespace internal
}  // namespace rhizome
