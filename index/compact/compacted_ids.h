#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/index/delta.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/index/vertex_ids.h"

namespace rhizome::inline internal {

/// The external ids of the next generation: those of this one and of its delta, whose texts are
/// copied from where they are, and whose orders are merged. Memory: while writing, 16 bytes a
/// vertex (and 8 a vertex for sorting integers). Threads: const. Ownership: what it is made of must
/// outlive it.
class CompactedIds {
 public:
  CompactedIds(const GraphParts& parts, const Delta& delta);

  /// Dense ids stay dense while every id is the vertex id itself.
  ExternalIdKind kind() const;

  /// Writes the dictionary; not of dense ids. Errors: kCorruption, the delta gives an id twice;
  /// those of the sink.
  Status Write(ByteSink& sink, const StoreId& store_id) const;

  /// Of a vertex that is in the generation or in the delta.
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

}  // namespace rhizome::inline internal
