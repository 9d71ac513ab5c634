#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// One change of a commit. Fields that its kind does not set are empty.
struct Change {
  /// The kind of a change, with the fields that it sets.
  enum class Kind : std::uint8_t {
    kVertexType,    ///< a new vertex type: `type` is its number, `name` its name
    kEdgeType,      ///< a new edge type
    kDeleteVertex,  ///< `vertex`, `id`; implies the deletion of its edges in both directions
    kPutVertex,     ///< a new vertex: `vertex`, `id`, and its `type` and `name`
    kDeleteEdges,   ///< all earlier edges from `vertex` to `neighbor` of `type`
    kPutEdge,       ///< one edge: as kDeleteEdges, with `weight` and `attributes`
    kPutRow,        ///< `vertex`, `id`; `name` is the array, `row` its bytes
  };
  Kind kind = Kind::kPutEdge;
  std::uint64_t commit = 0;  ///< its sequence number
  VertexId vertex = 0;       ///< for an edge: the source
  VertexId neighbor = 0;     ///< for an edge: the target
  ExternalId id = {};
  ExternalId neighbor_id = {};
  TypeId type = 0;
  std::string name = {};  ///< name of the type or the array
  float weight = 1;
  /// In the order of Graph::edge_attributes(): integers, codes of texts (TextValues) or the bits of
  /// doubles, as EdgeValue::OfBits accepts them. Empty: the graph has no edge attributes.
  std::vector<std::int64_t> attributes = {};
  std::vector<std::byte> row = {};
};

/// A range of commits: the commits after `after`, up to and including `last` (0: the graph's last).
struct ChangeRange {
  std::uint64_t after = 0;
  std::uint64_t last = 0;
  Hash128 after_commits{};  ///< HistoryState::commits after `after`; zeros: unknown to the caller
};

/// Reads the changes of a graph, commit by commit. To follow a store, read all of it at a snapshot
/// (graph_scan.h) and store its point(); then, periodically, call Refresh, open a feed after the
/// last commit seen, and apply it. The hash after that commit (after_commits, reached()) shows
/// whether the store still continues it, or was restored from a backup and then written to.
///
/// Each commit is returned as its *net effect*, in the order new types, deleted vertices, new
/// vertices, edges, rows. Applied in this order, to external ids, it turns the graph before the
/// commit into the graph after it. The pair of an undirected store appears once. Rows of an array
/// that `infer` computed are not changes.
///
/// A compaction merges commits into the generation: Open then fails with kNotFound and names the
/// first commit that can still be read. An open feed is not affected; it holds a snapshot.
///
/// Memory: about 1 MiB of records, or one record if it is longer, and one row.
/// Threads: one at a time; any number of feeds, concurrently with writers.
/// Ownership: shares the snapshot.
class ChangeFeed {
 public:
  /// Opens a feed on the graph's current commit.
  /// Errors: kNotFound, commits after `range.after` are already in the generation;
  /// kInvalidArgument, the range ends before it begins, or beyond Graph::sequence(), or
  /// `range.after_commits` belongs to a store that has diverged from this one.
  static Result<std::unique_ptr<ChangeFeed>> Open(const Graph& graph, const ChangeRange& range);
  ~ChangeFeed();

  /// Moves to the next change; returns false at the end. After an error every call fails with it.
  /// Errors: kCorruption; kIoError.
  Result<bool> Next(Change& change);

  /// Returns the last commit of the range. Once Next has returned false, all changes up to this
  /// commit were returned.
  std::uint64_t last() const;

  /// Return the states of the store after the commits `after` and last().
  const LeaderState& continued() const;
  const LeaderState& reached() const;

 private:
  class Impl;
  explicit ChangeFeed(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
