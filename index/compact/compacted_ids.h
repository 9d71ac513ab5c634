#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/topology/vertex_ids.h"

namespace rhizome {
inline namespace internal {

/// The external ids of the next generation: the ids of this generation and of its delta. Texts are
/// copied from their current place, and the two sorted orders are merged.
/// Memory: 8 bytes a new vertex.
/// Threads: const.
/// Ownership: `parts` and `delta` must outlive it.
class CompactedIds {
 public:
  CompactedIds(const GraphParts& parts, const Delta& delta);

  /// Returns the kind of ids. Dense ids remain dense while every id equals its vertex id.
  ExternalIdKind kind() const;

  /// Writes the dictionary; must not be called for dense ids.
  /// Errors: kCorruption, the delta has an id twice; any error of the sink.
  Status Write(ByteSink& sink, const StoreId& store_id) const;

  /// Accepts a vertex of the generation or of the delta.
  ExternalId IdOf(VertexId vertex) const;
  bool IsDeleted(VertexId vertex) const;

 private:
  ExternalIdKind kind_before() const { return parts_.info().id_kind; }
  std::vector<VertexId> SortedNew() const;
  Status PutIds(const IdStream::PutId& put) const;
  Status PutSorted(std::span<const VertexId> sorted_new, const IdStream::PutVertex& put) const;

  const GraphParts& parts_;
  const Delta& delta_;
  std::vector<VertexId> deleted_;  // sorted
  bool dense_ = true;
};

}  // namespace internal
}  // namespace rhizome
