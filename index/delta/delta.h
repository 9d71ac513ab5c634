#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/delta_record.h"
#include "rhizome/index/delta_run.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// What was written to a graph since its generation was made, up to one commit: the newest part of
/// a log-structured store, held in memory. Immutable; the next commit makes the next Delta, which
/// shares its runs. Runs of like size are merged, so that there are about log2(entries) of them and
/// a commit costs log2(entries) on average.
/// Rows of arrays stay in the catalogue; their places are here.
/// Threads: const.
class Delta {
 public:
  /// What the generation says.
  struct Base {
    bool symmetric = false;
    bool string_ids = false;
    std::uint32_t attribute_count = 0;
    std::uint64_t vertices = 0;
    std::vector<std::string> vertex_types;
    std::vector<std::string> edge_types;
    std::uint64_t sequence = 0;  ///< the last commit that it holds
  };

  /// No commit yet.
  static std::shared_ptr<const Delta> Empty(Base base);

  /// With the records that `store`'s catalogue has after this one's last. Errors: kCorruption.
  static Result<std::shared_ptr<const Delta>> Load(std::shared_ptr<const Delta> from,
                                                   const Store& store);

  /// With one more commit.
  std::shared_ptr<const Delta> With(DeltaRun run) const;

  bool empty() const { return runs_.empty(); }
  bool symmetric() const { return base_.symmetric; }
  std::uint64_t sequence() const { return sequence_; }  ///< of the last commit that it holds
  std::uint64_t commits() const { return commits_; }    ///< that it was loaded from
  std::uint64_t entries() const;
  std::uint64_t runs() const { return runs_.size(); }
  std::uint64_t base_vertices() const { return base_.vertices; }
  std::uint64_t vertices() const {
    return vertices_;
  }  ///< bound of vertex ids, new ones among them
  std::uint64_t deleted_vertices() const;
  const std::vector<std::string>& vertex_types() const { return *vertex_types_; }
  const std::vector<std::string>& edge_types() const { return *edge_types_; }

  /// What the next commit's record must fit to.
  DeltaContext Context() const;

  /// The newest vertex put with that id, if it was not deleted since. Nothing: look in the
  /// generation, whose vertex may be deleted here.
  std::optional<VertexId> Find(const ExternalId& id) const;
  bool IsDeleted(VertexId vertex) const;

  /// Of a new vertex, in [base_vertices(), vertices()).
  const ExternalId& IdOf(VertexId vertex) const;
  TypeId TypeOf(VertexId vertex) const;

  /// The commit that last put a vertex's row; nothing if it is the generation's.
  std::optional<std::uint64_t> RowCommit(std::uint64_t array_id, VertexId vertex) const;

  /// May a list of this direction differ from the generation's? False only if it does not.
  bool Touches(VertexId vertex, Direction direction) const;

  /// The changes of one list, resolved: edges that were added and still are there, and the keys of
  /// which the generation's edges are gone. Edges from and to deleted vertices are not looked at.
  struct ListChanges {
    std::vector<DeltaEdge> added;   ///< by (type, neighbour)
    std::vector<DeltaEdge> erased;  ///< by (type, neighbour), each once
  };
  ListChanges ChangesOf(VertexId vertex, Direction direction) const;

  /// All runs as one; null if empty.
  std::shared_ptr<const DeltaRun> Merged() const;

 private:
  Delta() = default;
  const DeltaRun& RunOf(VertexId vertex) const;

  Base base_;
  std::vector<std::shared_ptr<const DeltaRun>> runs_;  // oldest first
  std::uint64_t sequence_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t vertices_ = 0;
  bool any_deleted_ = false;
  std::shared_ptr<const std::vector<std::string>> vertex_types_;
  std::shared_ptr<const std::vector<std::string>> edge_types_;
};

}  // namespace rhizome::inline internal
