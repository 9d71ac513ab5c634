#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "index/delta/delta_record.h"
#include "index/delta/delta_run.h"
#include "rhizome/status.h"
#include "rhizome/store.h"

namespace rhizome {
inline namespace internal {

/// The changes of a graph since its generation was created, up to one commit: the in-memory part of
/// a log-structured store. A Delta is immutable; the next commit creates a new one, which shares
/// its runs. Runs of similar size are merged, so that there are about log2(entries) of them, and an
/// entry is merged log2(entries) times on average. The rows of arrays remain in the catalogue; the
/// delta holds references to them.
/// Threads: const.
class Delta {
 public:
  /// The properties of the generation that the delta builds on.
  struct Base {
    bool symmetric = false;
    bool string_ids = false;
    std::uint32_t attribute_count = 0;
    std::uint64_t vertices = 0;
    std::vector<std::string> vertex_types;
    std::vector<std::string> edge_types;
    std::uint64_t sequence = 0;  ///< the last commit that the generation includes
  };

  /// Returns a delta without commits.
  static std::shared_ptr<const Delta> Empty(Base base);

  /// Returns `from` with the later records of `store`'s catalogue.
  /// Errors: kCorruption.
  static Result<std::shared_ptr<const Delta>> Load(std::shared_ptr<const Delta> from,
                                                   const Store& store);

  /// Returns this delta with one more commit.
  std::shared_ptr<const Delta> With(DeltaRun run) const;

  bool empty() const { return runs_.empty(); }
  bool symmetric() const { return base_.symmetric; }
  std::uint64_t sequence() const { return sequence_; }  ///< the last commit that it includes
  /// state of the store after that commit; unknown if there is none, or if its record has version 1
  const HistoryState& state() const { return state_; }
  /// the first commit that it was loaded from; 0: none
  std::uint64_t first_commit() const { return runs_.empty() ? 0 : runs_.front()->first_sequence; }
  /// number of commits that it was loaded from
  std::uint64_t commits() const { return commits_; }
  std::uint64_t entries() const;
  std::uint64_t runs() const { return runs_.size(); }
  std::uint64_t base_vertices() const { return base_.vertices; }
  std::uint64_t vertices() const {
    return vertices_;
  }  ///< bound of vertex ids, including new vertices
  std::uint64_t deleted_vertices() const;
  const std::vector<std::string>& vertex_types() const { return *vertex_types_; }
  const std::vector<std::string>& edge_types() const { return *edge_types_; }

  /// Returns the state of the graph against which the next commit's record is checked.
  DeltaContext Context() const;

  /// Returns the newest vertex that was added with that id, unless it was deleted later. On
  /// nullopt, the caller searches the generation, whose vertex may be deleted here.
  std::optional<VertexId> Find(const ExternalId& id) const;
  bool IsDeleted(VertexId vertex) const;

  /// IdOf and TypeOf accept a new vertex, in [base_vertices(), vertices()).
  const ExternalId& IdOf(VertexId vertex) const;
  TypeId TypeOf(VertexId vertex) const;

  /// The texts that commits added to a dictionary. EndOfTexts returns the code above the last one;
  /// nullopt if there is none. TextOf accepts a code of an added text; nullptr if there is none.
  std::optional<std::int64_t> FirstText(TextsId dictionary) const;
  std::optional<std::int64_t> EndOfTexts(TextsId dictionary) const;
  std::optional<std::int64_t> FindText(TextsId dictionary, std::string_view text) const;
  const std::string* TextOf(TextsId dictionary, std::int64_t code) const;

  /// Returns the bytes of all added texts.
  std::uint64_t text_bytes() const { return text_bytes_; }

  /// Returns the last commit that put a vertex's row; nullopt if the generation's row is current.
  std::optional<std::uint64_t> RowCommit(std::uint64_t array_id, VertexId vertex) const;

  /// Returns false if a list of this direction is known to be the same as in the generation, true
  /// if it may differ.
  bool Touches(VertexId vertex, Direction direction) const;

  /// The resolved changes of one list: added edges that still exist, and the keys whose edges in
  /// the generation are erased. Edges from and to deleted vertices are not considered.
  struct ListChanges {
    std::vector<DeltaEdge> added;   ///< by (type, neighbour)
    std::vector<DeltaEdge> erased;  ///< by (type, neighbour), each once
  };
  ListChanges ChangesOf(VertexId vertex, Direction direction) const;

  /// Calls visit(edge) for each edge that a commit added, from both ends in a symmetric graph. It
  /// may include edges that a later commit erased.
  template <typename Visit>
  void ForEachAdded(Visit&& visit) const {
    for (const auto& run : runs_)
      for (const DeltaEdge& edge : run->out)
        if (!edge.erase) visit(edge);
  }

  /// Returns all runs merged into one; null if there are none.
  std::shared_ptr<const DeltaRun> Merged() const;

 private:
  Delta() = default;
  const DeltaRun& RunOf(VertexId vertex) const;

  Base base_;
  std::vector<std::shared_ptr<const DeltaRun>> runs_;  // oldest first
  std::uint64_t sequence_ = 0;
  HistoryState state_;
  std::uint64_t commits_ = 0;
  std::uint64_t vertices_ = 0;
  bool any_deleted_ = false;
  std::uint64_t text_bytes_ = 0;
  std::shared_ptr<const std::vector<std::string>> vertex_types_;
  std::shared_ptr<const std::vector<std::string>> edge_types_;
};

}  // namespace internal
}  // namespace rhizome
