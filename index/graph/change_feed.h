#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/external_id.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// One thing that a commit changed. Fields that a kind does not name are empty.
struct Change {
  enum class Kind : std::uint8_t {
    kVertexType,    ///< a new vertex type: `type` is its number, `name` its name
    kEdgeType,      ///< a new edge type
    kDeleteVertex,  ///< `vertex`, `id`; its edges go with it, in both directions, unnamed
    kPutVertex,     ///< a new vertex: `vertex`, `id`, and its `type` and `name`
    kDeleteEdges,   ///< all edges from `vertex` to `neighbor` of `type` that were there before
    kPutEdge,       ///< one edge: as above, `weight` and `attributes`
    kPutRow,        ///< `vertex`, `id`; `name` is the array's, `row` its bytes
  };
  Kind kind = Kind::kPutEdge;
  std::uint64_t commit = 0;  ///< its sequence
  VertexId vertex = 0;       ///< of an edge: the source
  VertexId neighbor = 0;     ///< of an edge: the target
  ExternalId id = {};
  ExternalId neighbor_id = {};
  TypeId type = 0;
  std::string name = {};  ///< of the type, or the array
  float weight = 1;
  /// In the order of Graph::edge_attributes(), integers or the bits of doubles: what
  /// EdgeValue::OfBits takes. Empty: the graph has none.
  std::vector<std::int64_t> attributes = {};
  std::vector<std::byte> row = {};
};

/// Which commits: those after `after`, up to and with `last` (0: all that the graph sees).
struct ChangeRange {
  std::uint64_t after = 0;
  std::uint64_t last = 0;
};

/// What was written to a graph, commit by commit, in order: for followers, audits and caches that
/// must forget. To follow a store: read all of it at a snapshot (graph_scan.h) and note its
/// sequence(); then, now and then, Refresh, open a feed after the last commit that was seen, and
/// apply it.
///
/// Each commit is given as its *net effect*, in the order new types, deleted vertices, new
/// vertices, edges, rows: applied in this order, to external ids, it makes the graph before the
/// commit the graph after it. What a batch put and deleted again does not appear; of several rows
/// that it put for one vertex and array the last does. The pair of an undirected store appears
/// once, whichever end was named first. Rows of an array that `infer` computed are no changes: they
/// follow from the rest.
///
/// A compaction takes commits into the generation, and then they can no longer be told one by one:
/// Open says kNotFound and from where on they can. A feed that is open goes on: it holds a snapshot
/// (and its generation) until it goes.
///
/// Memory: about 1 MiB of records, or one record if it is longer, and one row. Opening reads the
/// delta's records from their beginning on.
/// Threads: one at a time; any number of feeds beside writers. Ownership: shares the snapshot.
class ChangeFeed {
 public:
  /// Errors: kNotFound, commits after `range.after` are in the generation already;
  /// kInvalidArgument, the range ends before it begins or beyond Graph::sequence().
  static Result<std::unique_ptr<ChangeFeed>> Open(const Graph& graph, const ChangeRange& range);
  ~ChangeFeed();

  /// Moves to the next change; false at the end. Errors: kCorruption; kIoError; then no further
  /// call succeeds.
  Result<bool> Next(Change& change);

  /// Commits up to this one were given in full when Next has said false.
  std::uint64_t last() const;

 private:
  class Impl;
  explicit ChangeFeed(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
