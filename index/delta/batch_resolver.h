#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "index/delta/batch_texts.h"
#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "rhizome/status.h"
#include "rhizome/write_batch.h"
#include "storage/catalog/catalog.h"

namespace rhizome {
inline namespace internal {

/// Resolves one batch against the graph before the batch: names become numbers, and everything is
/// checked before anything is written.
/// Ownership: borrows all constructor arguments.
class BatchResolver {
 public:
  BatchResolver(const Store& store, const GraphParts& parts, std::shared_ptr<const Delta> before,
                OpenDictionaries& dictionaries, const WriteOptions& options);

  /// Resolves `batch` into builder() and rows().
  /// Errors: kInvalidArgument, naming the operation: an unknown array or edge type, a row of the
  /// wrong width or type, an attribute of the wrong type, an id of another kind than the store's, a
  /// weight that is not finite, a text that cannot be stored; kNotFound, an unknown vertex (see
  /// WriteOptions); errors of reading a dictionary of texts.
  Status Resolve(const WriteBatch& batch);

  /// Returns the changes of the resolved batch.
  DeltaRunBuilder& builder() { return builder_; }
  const std::vector<DeltaRow>& rows() const { return rows_; }

  /// Returns the bytes of rows that the resolver made; rows() borrows from them and from the batch.
  std::vector<std::vector<std::byte>> TakeRowBytes() { return std::move(row_bytes_); }
  std::uint64_t vertices_added() const { return builder_.pending().vertex_types.size(); }

 private:
  using Operation = WriteBatch::Operation;
  Status Apply(const Operation& operation);
  Status PutVertex(const Operation& operation);
  Status PutEdge(const Operation& operation);
  Status DeleteEdge(const Operation& operation);
  Status PutRow(const Operation& operation);
  Status PutTexts(const Operation& operation);
  Result<const ArrayEntry*> FindArray(const std::string& name) const;
  Status AddRow(const Operation& operation, const ArrayEntry& array,
                std::span<const std::byte> row);
  Result<std::vector<std::int64_t>> AttributeBits(std::span<const EdgeValue> values);
  Result<std::int64_t> BitsOf(std::size_t attribute, const EdgeValue& value);
  Result<ExternalId> OwnKind(const ExternalId& id) const;
  std::optional<VertexId> Find(const ExternalId& id) const;
  Result<VertexId> FindOrAdd(const ExternalId& id, TypeId type_of_added = 0);
  TypeId TypeOf(VertexId vertex) const;
  Status OtherType(const Operation& operation, const ArrayEntry& array, TypeId type) const;
  Result<TypeId> EdgeType(const std::string& name);
  Result<TypeId> VertexType(const std::string& name);

  const Store& store_;  // used for its arrays
  const GraphParts& parts_;
  const Delta& delta_;
  const WriteOptions& options_;
  DeltaRunBuilder builder_;
  BatchTexts texts_;
  std::vector<DeltaRow> rows_;
  std::vector<std::vector<std::byte>> row_bytes_;
  // Changes of ids within the batch: the vertex that the batch added, or nullopt after it deleted
  // one.
  std::unordered_map<ExternalId, std::optional<VertexId>> own_ids_;
  // Numbers of the types that the batch has named or added.
  std::unordered_map<std::string, TypeId> edge_types_;
  std::unordered_map<std::string, TypeId> vertex_types_;
};

}  // namespace internal
}  // namespace rhizome
