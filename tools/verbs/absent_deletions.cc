#include "tools/verbs/absent_deletions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rhizome/graph_lookup.h"

namespace rhizome {
namespace {

/// Number of neighbour lists in memory at a time.
constexpr std::size_t kListsAtOnce = 256;

/// An edge: the vertex that owns the list, the vertex in the list, and the number of the edge type.
using GraphEdge = std::tuple<VertexId, VertexId, TypeId>;
/// An edge as named in a batch. Ids are text, so that equal ids compare equal however they were
/// given.
using NamedEdge = std::tuple<std::string, std::string, std::string>;

/// Replays a batch and counts deletions that have no effect:
/// 1. Collects the edges that the batch deletes and looks them up in the graph.
/// 2. Applies the operations in order to a model of the vertices and edges that the batch names.
/// 3. Counts each deletion whose object does not exist at that point.
class DeletionCounter {
  using Operation = WriteBatch::Operation;
  using Kind = WriteBatch::Kind;

 public:
  explicit DeletionCounter(const GraphSnapshot& graph)
      : graph_(graph),
        types_(graph.edge_types()),
        in_lists_(graph.info().directions == Direction::kIn) {}

  Result<std::uint64_t> Count(const WriteBatch& batch) {
    for (const Operation& operation : batch.operations())
      if (operation.kind == Kind::kDeleteEdge)
        if (const auto edge = InGraph(operation)) wanted_.insert(*edge);
    RHIZOME_RETURN_IF_ERROR(FindWanted());
    std::uint64_t absent = 0;
    for (const Operation& operation : batch.operations()) {
      ++turn_;
      absent += !Apply(operation);
    }
    return absent;
  }

 private:
  /// State of a vertex or an edge named by the batch, after the operations applied so far.
  struct State {
    bool there = false;
    std::uint64_t put = 0;      // number of the last operation that put it; 0: none
    std::uint64_t deleted = 0;  // number of the last operation that deleted it; 0: none
  };

  bool symmetric() const { return graph_.info().symmetric; }

  NamedEdge NameOf(const Operation& operation) const {
    std::string src = ToString(operation.id);
    std::string dst = ToString(operation.dst);
    if (symmetric() && dst < src) std::swap(src, dst);
    return {std::move(src), std::move(dst),
            operation.name.empty() ? types_.front() : operation.name};
  }

  /// Returns the edge as the graph before the batch would store it, or nullopt if one of its ends
  /// or its type does not exist.
  std::optional<GraphEdge> InGraph(const Operation& operation) const {
    const auto src = graph_.Find(operation.id);
    const auto dst = graph_.Find(operation.dst);
    if (!src || !dst) return std::nullopt;
    const auto type = operation.name.empty()
                          ? types_.begin()
                          : std::find(types_.begin(), types_.end(), operation.name);
    if (type == types_.end()) return std::nullopt;
    return GraphEdge{in_lists_ ? *dst : *src, in_lists_ ? *src : *dst,
                     static_cast<TypeId>(type - types_.begin())};
  }

  /// Looks up the edges of `wanted_` and inserts those that the graph has into `found_`.
  Status FindWanted() {
    std::vector<VertexId> owners;
    for (const GraphEdge& edge : wanted_)
      if (owners.empty() || owners.back() != std::get<0>(edge)) owners.push_back(std::get<0>(edge));
    std::sort(owners.begin(), owners.end(),
              [this](VertexId a, VertexId b) { return *graph_.RowOf(a) < *graph_.RowOf(b); });
    NeighborLists lists;
    for (std::size_t begin = 0; begin < owners.size(); begin += kListsAtOnce) {
      const auto some =
          std::span(owners).subspan(begin, std::min(kListsAtOnce, owners.size() - begin));
      RHIZOME_RETURN_IF_ERROR(
          LookUpNeighbors(graph_, some, in_lists_ ? Direction::kIn : Direction::kOut, lists));
      for (std::size_t i = 0; i < some.size(); ++i) {
        for (std::uint64_t at = lists.offsets[i]; at < lists.offsets[i + 1]; ++at) {
          const GraphEdge edge{some[i], lists.vertices[at],
                               lists.types.empty() ? TypeId{0} : lists.types[at]};
          if (wanted_.contains(edge)) found_.insert(edge);
        }
      }
    }
    return Status::Ok();
  }

  /// Applies one operation. Returns false for a deletion whose object does not exist.
  bool Apply(const Operation& operation) {
    switch (operation.kind) {
      case Kind::kDeleteVertex: {
        const bool there = IsThere(operation.id);
        State& state = vertices_[ToString(operation.id)];
        state.there = false;
        state.deleted = turn_;
        return there;
      }
      case Kind::kDeleteEdge: {
        const bool there = IsThere(operation);
        edges_[NameOf(operation)] = {.there = false, .deleted = turn_};
        return there;
      }
      case Kind::kPutEdge:
      case Kind::kUpsertEdge:
        vertices_[ToString(operation.id)].there = true;
        vertices_[ToString(operation.dst)].there = true;
        edges_[NameOf(operation)] = {.there = true, .put = turn_};
        return true;
      case Kind::kPutVertex:
      case Kind::kPutRow:
      case Kind::kPutTexts:
        vertices_[ToString(operation.id)].there = true;
        return true;
    }
    return true;
  }

  bool IsThere(const ExternalId& id) const {
    const auto own = vertices_.find(ToString(id));
    return own != vertices_.end() ? own->second.there : graph_.Find(id).has_value();
  }

  /// Returns the number of the operation in which the batch last deleted a vertex (with its edges),
  /// or 0.
  std::uint64_t DeletedAt(const std::string& id) const {
    const auto own = vertices_.find(id);
    return own == vertices_.end() ? 0 : own->second.deleted;
  }

  bool IsThere(const Operation& operation) const {
    const NamedEdge name = NameOf(operation);
    const std::uint64_t deleted =
        std::max(DeletedAt(std::get<0>(name)), DeletedAt(std::get<1>(name)));
    if (const auto own = edges_.find(name); own != edges_.end())
      return own->second.there && own->second.put > deleted;
    if (deleted != 0) return false;
    const auto edge = InGraph(operation);
    return edge && found_.contains(*edge);
  }

  const GraphSnapshot& graph_;
  const std::vector<std::string> types_;
  const bool in_lists_;  // the graph stores in-lists only
  std::uint64_t turn_ = 0;
  std::set<GraphEdge> wanted_;
  std::set<GraphEdge> found_;
  std::map<std::string, State> vertices_;
  std::map<NamedEdge, State> edges_;
};

}  // namespace

Result<std::uint64_t> CountAbsentDeletions(const GraphSnapshot& graph, const WriteBatch& batch) {
  const auto operations = batch.operations();
  using Kind = WriteBatch::Kind;
  const bool any =
      std::any_of(operations.begin(), operations.end(), [](const WriteBatch::Operation& one) {
        return one.kind == Kind::kDeleteVertex || one.kind == Kind::kDeleteEdge;
      });
  if (!any) return 0;
  return DeletionCounter(graph).Count(batch);
}

}  // namespace rhizome
