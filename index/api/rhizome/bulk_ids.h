#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/external_id.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/id_span.h"
#include "rhizome/result.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Look-ups of ids for many vertices in one call, all at one commit (for a live graph, the commit
/// when the call begins). `out` has the length of the input; after an error it is unspecified.
/// Errors: kInvalidArgument, a value out of range (naming it), or an `out` of another length.
/// Threads: any.
Status VerticesAt(const Graph& graph, std::span<const Row> rows, std::span<VertexId> out);
Status RowsOf(const Graph& graph, std::span<const VertexId> vertices, std::span<Row> out);
Status TypesOf(const Graph& graph, std::span<const VertexId> vertices, std::span<TypeId> out);

/// Finds the vertices of external ids, as Graph::Find does.
/// Errors: as above; kNotFound, quoting the first unknown id.
Status FindAll(const Graph& graph, const IdSpan& ids, std::span<VertexId> out);

/// External ids of a store's kind; the list of the other kind is empty.
struct ExternalIds {
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
};

/// Returns the external ids of vertices, in order.
/// Errors: kInvalidArgument, an id out of range.
Result<ExternalIds> ExternalIdsOf(const Graph& graph, std::span<const VertexId> vertices);

/// Numbers the edges of a snapshot from 0, so that an EdgeId is one integer: partition by
/// partition, each in the order of its edge ids, followed by the edges written since the
/// generation, in the order of their commits. The number of an edge does not change with further
/// commits, and is the same in every process that reads the store, until the next compaction.
/// Threads: const.
/// Ownership: a value.
class EdgeNumbering {
 public:
  explicit EdgeNumbering(const GraphSnapshot& graph);

  std::int64_t Of(const EdgeId& edge) const {
    return static_cast<std::int64_t>(first_[edge.partition] + edge.position);
  }

  /// Returns the edge with a number.
  /// Errors: kInvalidArgument, a negative number.
  Result<EdgeId> At(std::int64_t number) const;

  /// Returns the number of edges of the generation. They have lower numbers than all other edges.
  std::uint64_t generation_edges() const { return first_.back(); }

 private:
  std::vector<std::uint64_t> first_;  // [partitions + 1]; last: edges written since the generation
};

}  // namespace rhizome
