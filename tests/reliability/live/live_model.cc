// Defines the contents of a live store (LiveInput, LiveBatch) and compares a graph with the model
// after the number of commits that the row of "root" states (CommitsIn): vertices, rows, number of
// edges, and neighbours in both directions.

#include "reliability/live/live_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/graph.h"
#include "rhizome/graph_lookup.h"
#include "testing/graph_model.h"
#include "testing/update_model.h"

namespace rhizome::testing {
namespace {

constexpr std::uint64_t kCommitsUntilDeleted = 40;
constexpr std::uint64_t kMaxCommits = 1'000'000;  // more than any test writes

const std::string kRoot = "root";

ExternalId NewVertexOf(std::uint64_t commit) { return ExternalId(fmt::format("a{}", commit)); }

Status Wrong(std::uint64_t commits, const std::string& what) {
  return Status::Corruption(fmt::format("not what {} commits make: {}", commits, what));
}

Result<std::uint64_t> CountByRoot(const Graph& graph) {
  RHIZOME_ASSIGN_OR_RETURN(const VertexId root, graph.Find(ExternalId(kRoot)));
  std::vector<float> row(UpdateModel::kDim);
  RHIZOME_RETURN_IF_ERROR(
      graph.ReadRows("feat", std::span(&root, 1), std::as_writable_bytes(std::span(row))));
  const auto count = static_cast<std::uint64_t>(std::clamp(row[0], 0.0F, 1e9F));
  if (count > kMaxCommits || static_cast<float>(count) != row[0])
    return Fail(Status::Corruption(fmt::format("the row of root says {}", row[0])));
  return count;
}

UpdateModel ModelOf(std::uint64_t commits) {
  UpdateModel model(LiveInput());
  for (std::uint64_t commit = 0; commit < commits; ++commit) model.Apply(LiveBatch(commit));
  return model;
}

/// Compares a graph with the model, vertex by vertex.
class LiveComparison {
 public:
  LiveComparison(const Graph& graph, std::uint64_t commits)
      : graph_(graph), commits_(commits), model_(ModelOf(commits)) {}

  Status Run() {
    RHIZOME_RETURN_IF_ERROR(FindAll());
    RHIZOME_RETURN_IF_ERROR(CompareRows());
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t edges, graph_.CountEdges());
    if (edges != model_.edges().size())
      return Wrong(commits_, fmt::format("{} edges, not {}", edges, model_.edges().size()));
    for (const auto& [name, vertex] : ids_) {
      for (const Direction direction : {Direction::kOut, Direction::kIn})
        RHIZOME_RETURN_IF_ERROR(CompareList(name, vertex, direction));
    }
    return Status::Ok();
  }

 private:
  Status FindAll() {
    for (const auto& [name, _] : model_.vertices()) {
      const auto found = graph_.Find(ExternalId(name));
      if (!found) return Wrong(commits_, name + ": " + found.error().ToString());
      ids_[name] = *found;
    }
    for (const std::string& name : model_.gone())
      if (!ids_.contains(name) && graph_.Find(ExternalId(name)))
        return Wrong(commits_, name + " was deleted, and is there");
    if (graph_.live_vertex_count() == ids_.size()) return Status::Ok();
    return Wrong(commits_,
                 fmt::format("{} vertices, not {}", graph_.live_vertex_count(), ids_.size()));
  }

  Status CompareRows() const {
    std::vector<VertexId> vertices;
    for (const auto& [_, vertex] : ids_) vertices.push_back(vertex);
    std::vector<float> rows(vertices.size() * UpdateModel::kDim, -1);
    RHIZOME_RETURN_IF_ERROR(
        graph_.ReadRows("feat", vertices, std::as_writable_bytes(std::span(rows))));
    auto row = rows.begin();
    for (const auto& [name, vertex] : model_.vertices()) {
      if (!std::equal(vertex.row.begin(), vertex.row.end(), row))
        return Wrong(commits_, "the row of " + name + " is another one");
      row += UpdateModel::kDim;
    }
    return Status::Ok();
  }

  Status CompareList(const std::string& name, VertexId vertex, Direction direction) const {
    const bool out = direction == Direction::kOut;
    std::vector<Neighbor> expected;
    for (const UpdateModel::Edge& edge : model_.edges())
      if ((out ? edge.src : edge.dst) == name)
        expected.push_back({.vertex = ids_.at(out ? edge.dst : edge.src), .weight = edge.weight});
    RHIZOME_ASSIGN_OR_RETURN(auto found, graph_.Neighbors(vertex, direction));
    std::sort(expected.begin(), expected.end(), ComesBefore);
    std::sort(found.begin(), found.end(), ComesBefore);
    if (found == expected) return Status::Ok();
    return Wrong(commits_, fmt::format("the {} edges of {} are others ({}, expected {})",
                                       out ? "out" : "in", name, found.size(), expected.size()));
  }

  const Graph& graph_;
  const std::uint64_t commits_;
  const UpdateModel model_;
  std::map<std::string, VertexId> ids_;
};

}  // namespace

GraphInput LiveInput() {
  GraphInput input;
  input.vertex_count = 2;
  input.id_kind = ExternalIdKind::kString;
  input.string_ids = {kRoot, "base"};
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  input.edges.src = {0};
  input.edges.dst = {1};
  input.edges.weight = {1};
  UpdateModel::AddRows(input);
  return input;
}

WriteBatch LiveBatch(std::uint64_t commit) {
  WriteBatch batch;
  const auto weight = static_cast<float>(commit % 16);
  const auto number = static_cast<float>(commit);
  const ExternalId root(kRoot);
  const ExternalId fresh = NewVertexOf(commit);
  const auto earlier = [commit](std::uint64_t by) { return NewVertexOf(commit - by); };
  batch.PutEdge(root, fresh, {.weight = weight});
  if (commit >= 3) batch.PutEdge(fresh, earlier(3), {.weight = weight + 1});
  batch.PutRow(fresh, "feat", {number, number * 2, number * 3});
  batch.PutRow(root, "feat", {number + 1, 0.0F, 7.0F});
  switch (commit % 5) {
    case 1:
      batch.DeleteEdge(root, earlier(1));
      break;
    case 2:
      batch.DeleteVertex(earlier(2));
      break;
    case 3:  // an edge above created it again, with a row of zeros
      if (commit % 2 == 1) batch.PutRow(earlier(3), "feat", {number, 1.0F, 2.0F});
      break;
    case 4:
      batch.UpsertEdge(root, earlier(2), {.weight = 9});
      batch.DeleteVertex(earlier(3));
      break;
    default:
      break;
  }
  if (commit >= kCommitsUntilDeleted) batch.DeleteVertex(earlier(kCommitsUntilDeleted));
  return batch;
}

Result<std::uint64_t> CommitsIn(const Graph& graph) {
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t commits, CountByRoot(graph));
  RHIZOME_RETURN_IF_ERROR(LiveComparison(graph, commits).Run());
  return commits;
}

}  // namespace rhizome::testing
