#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/external_id.h"

namespace rhizome {

/// What an edge carries.
struct EdgeFields {
  std::string type = {};  ///< name of its edge type; empty: the first
  float weight = 1;       ///< ignored by a store without weights

  /// Values of the store's edge attributes, in the order of Graph::edge_attributes(), which says
  /// how many each has: integers, or the bits of a float's double. Empty: all 0.
  std::vector<std::int64_t> attributes = {};
};

/// Updates that Graph::Write applies together, in the order they were added (DESIGN section 6).
/// Vertices are named by their external ids. Nothing is checked before Graph::Write.
///
/// Threads: one at a time. Memory: what was added; copies everything.
class WriteBatch {
 public:
  /// Adds a vertex; one that exists stays as it is. `type`: name of its vertex type; empty: the
  /// first (of one that exists: any).
  void PutVertex(ExternalId id, std::string_view type = {});

  /// Hides a vertex and its edges in both directions; nothing happens where there is none. The same
  /// id put again is a new vertex.
  void DeleteVertex(ExternalId id);

  /// Adds one parallel edge; its vertices are added where they do not exist. In an undirected store
  /// the pair is added, once for both directions.
  void PutEdge(ExternalId src, ExternalId dst, EdgeFields fields = {});

  /// Replaces all edges of the same source, type and target by one.
  void UpsertEdge(ExternalId src, ExternalId dst, EdgeFields fields = {});

  /// Removes all edges of the same source, type and target; nothing happens where there is none.
  void DeleteEdge(ExternalId src, ExternalId dst, std::string_view type = {});

  /// Replaces a vertex's row of an array; the vertex is added where it does not exist. `row` holds
  /// the array's dim elements in its dtype.
  void PutRow(ExternalId id, std::string_view array, std::span<const std::byte> row);
  template <typename T>
  void PutRow(ExternalId id, std::string_view array, std::span<const T> row) {
    PutRow(std::move(id), array, std::as_bytes(row));
  }

  void Clear() { operations_.clear(); }
  bool empty() const { return operations_.empty(); }
  std::size_t size() const { return operations_.size(); }  ///< operations

  /// For the engine.
  enum class Kind : std::uint8_t {
    kPutVertex,
    kDeleteVertex,
    kPutEdge,
    kUpsertEdge,
    kDeleteEdge,
    kPutRow,
  };
  struct Operation {
    Kind kind = Kind::kPutVertex;
    ExternalId id = {};     ///< vertex, or source
    ExternalId dst = {};    ///< of an edge
    std::string name = {};  ///< of a type, or an array
    float weight = 1;       ///< of an edge
    std::vector<std::int64_t> attributes = {};
    std::vector<std::byte> row = {};
  };
  std::span<const Operation> operations() const { return operations_; }

 private:
  std::vector<Operation> operations_;
};

/// How Graph::Write applies a batch.
struct WriteOptions {
  /// Durable when it returns. Without it a power cut may lose the last batches, never one of them
  /// in part, nor an earlier one without the later.
  bool sync = true;

  /// Edge and vertex types that the schema lacks are added to it; else they are refused.
  bool create_types = false;

  /// Vertices that an edge or row names and that do not exist are added; else they are refused.
  bool create_vertices = true;

  /// Where operation i comes from, for messages, such as "edges.tsv:12". Default: "operation i".
  std::function<std::string(std::size_t operation)> place = {};
};

/// What a batch did.
struct WriteResult {
  std::uint64_t commit = 0;  ///< its sequence: Graph::sequence() is at least this afterwards
  std::uint64_t vertices_added = 0;
};

}  // namespace rhizome
