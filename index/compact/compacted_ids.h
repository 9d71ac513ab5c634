#pragma once

#include <cstdint>
#include <vector>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/topology/vertex_ids.h"

namespace rhizome {
inline namespace internal {

/// The external ids of the next generation: the ids of this generation and of its delta. Texts are
/// copied from their current place, and the two sorted orders are merged.
/// Memory: while writing, 16 bytes a vertex (and 8 a vertex to sort integers).
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
  Status WriteIntegers(ByteSink& sink, const StoreId& store_id) const;
  Status WriteStrings(ByteSink& sink, const StoreId& store_id) const;
  std::vector<VertexId> SortedNew() const;
  Result<std::vector<std::uint64_t>> Sorted() const;
  Status PutTexts(const std::function<Status(std::span<const std::byte>)>& put) const;

  const GraphParts& parts_;
  const Delta& delta_;
  std::vector<VertexId> deleted_;  // sorted
  bool dense_ = true;
};

}  // namespace internal
}  // namespace rhizome
