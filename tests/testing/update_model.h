#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "index/delta/delta_view.h"
#include "index/generation/graph_builder.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph.h"
#include "testing/graph_model.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// A changing graph as plain lists by external id. It answers every query by a scan of all of them.
/// Batches are applied to the model and to the engine, and both must then return the same answers.
class UpdateModel {
 public:
  struct Edge {
    std::string src;
    std::string dst;
    std::string type;
    float weight = 1;
    friend auto operator<=>(const Edge& a, const Edge& b) {
      return std::tie(a.src, a.dst, a.type, a.weight) <=> std::tie(b.src, b.dst, b.type, b.weight);
    }
    friend bool operator==(const Edge&, const Edge&) = default;
  };
  /// An entry of a neighbour list: neighbour, type, weight.
  using Entry = std::tuple<std::string, std::string, float>;
  struct Vertex {
    std::string type;
    std::vector<float> row;  ///< its row of the array "feat"
  };
  static constexpr std::uint64_t kDim = 3;

  /// Adds the array "feat" to `input`.
  static void AddRows(GraphInput& input) {
    ArrayInput array;
    array.name = "feat";
    array.dim = kDim;
    array.chunk_rows = 128;
    array.read_rows = [](std::span<const VertexId> vertices, std::span<std::byte> out) {
      for (std::size_t i = 0; i < vertices.size(); ++i) {
        const auto row = FirstRow(vertices[i]);
        std::memcpy(out.data() + i * kDim * sizeof(float), row.data(), kDim * sizeof(float));
      }
      return Status::Ok();
    };
    input.arrays.push_back(std::move(array));
  }

  explicit UpdateModel(const GraphInput& input)
      : undirected_(input.undirected), weighted_(!input.edges.weight.empty()) {
    std::vector<std::string> ids;
    for (std::uint64_t v = 0; v < input.vertex_count; ++v) {
      ids.push_back(input.id_kind == ExternalIdKind::kInteger ? std::to_string(input.integer_ids[v])
                    : input.id_kind == ExternalIdKind::kString ? input.string_ids[v]
                                                               : std::to_string(v));
      vertices_[ids.back()] = {
          input.vertex_type_names[input.vertex_type.empty() ? 0 : input.vertex_type[v]],
          FirstRow(static_cast<VertexId>(v))};
    }
    first_vertex_type_ = input.vertex_type_names[0];
    first_edge_type_ = input.edge_type_names[0];
    for (std::size_t e = 0; e < input.edges.size(); ++e) {
      Add({ids[static_cast<std::size_t>(input.edges.src[e])],
           ids[static_cast<std::size_t>(input.edges.dst[e])],
           input.edge_type_names[input.edges.type.empty() ? 0 : input.edges.type[e]],
           input.edges.weight.empty() ? 1.0F : input.edges.weight[e]});
    }
  }

  const std::map<std::string, Vertex>& vertices() const { return vertices_; }
  const std::vector<Edge>& edges() const { return edges_; }
  const std::set<std::string>& gone() const { return gone_; }

  /// Applies each operation of a batch to the model.
  void Apply(const WriteBatch& batch) {
    for (const WriteBatch::Operation& operation : batch.operations()) {
      const std::string id = ToString(operation.id);
      const std::string dst = ToString(operation.dst);
      const std::string& type = operation.name.empty() ? first_edge_type_ : operation.name;
      switch (operation.kind) {
        case WriteBatch::Kind::kPutVertex:
          Touch(id, operation.name.empty() ? first_vertex_type_ : operation.name);
          break;
        case WriteBatch::Kind::kDeleteVertex:
          if (vertices_.erase(id) > 0) gone_.insert(id);
          std::erase_if(edges_, [&](const Edge& edge) { return edge.src == id || edge.dst == id; });
          break;
        case WriteBatch::Kind::kUpsertEdge:
        case WriteBatch::Kind::kDeleteEdge:
          Erase(id, dst, type);
          if (undirected_) Erase(dst, id, type);
          if (operation.kind == WriteBatch::Kind::kDeleteEdge) break;
          [[fallthrough]];
        case WriteBatch::Kind::kPutEdge:
          Touch(id, first_vertex_type_);
          Touch(dst, first_vertex_type_);
          Add({id, dst, type, operation.weight});
          break;
        case WriteBatch::Kind::kPutRow:
          Touch(id, first_vertex_type_);
          vertices_[id].row.resize(kDim);
          std::memcpy(vertices_[id].row.data(), operation.row.data(), operation.row.size());
          break;
        case WriteBatch::Kind::kPutTexts:
          break;  // the model has no texts
      }
    }
  }

  /// Draws a few operations on old and new vertices, hubs among them.
  WriteBatch DrawBatch(std::mt19937_64& rng, bool string_ids, std::size_t operations) const {
    WriteBatch batch;
    const auto id = [&]() -> ExternalId {
      const std::uint64_t kind = rng() % 10;
      if (kind == 0 || vertices_.empty()) {
        const auto fresh = static_cast<std::int64_t>(rng() % 40) + 1000;
        return string_ids ? ExternalId("new" + std::to_string(fresh)) : ExternalId(fresh);
      }
      if (kind == 1 && !gone_.empty()) return Parse(Nth(gone_, rng() % gone_.size()), string_ids);
      const std::size_t bound =
          kind < 6 ? std::min<std::size_t>(vertices_.size(), 6) : vertices_.size();
      return Parse(std::next(vertices_.begin(), static_cast<std::ptrdiff_t>(rng() % bound))->first,
                   string_ids);
    };
    const auto edge_type = [&]() -> std::string {
      if (edges_.empty() || rng() % 4 == 0) return rng() % 6 == 0 ? "fresh" : "";
      return edges_[rng() % edges_.size()].type;
    };
    const auto fields = [&] {
      const float weight = weighted_ ? static_cast<float>(rng() % 16) / 4.0F : 1.0F;
      return EdgeFields{.type = edge_type(), .weight = weight};
    };
    for (std::size_t i = 0; i < operations; ++i) {
      const std::uint64_t kind = rng() % 16;
      if (kind < 6) {
        batch.PutEdge(id(), id(), fields());
      } else if (kind < 8) {
        batch.UpsertEdge(id(), id(), fields());
      } else if (kind < 11 && !edges_.empty()) {
        const Edge& edge = edges_[rng() % edges_.size()];
        batch.DeleteEdge(Parse(edge.src, string_ids), Parse(edge.dst, string_ids), edge.type);
      } else if (kind == 11) {
        batch.DeleteVertex(id());
      } else if (kind == 12) {
        batch.PutVertex(id(), rng() % 5 == 0 ? "kind" : "");
      } else {
        std::vector<float> row(kDim);
        for (float& value : row) value = static_cast<float>(rng() % 1000);
        batch.PutRow(id(), "feat", std::span<const float>(row));
      }
    }
    return batch;
  }

  /// Checks the vertex types of the ends of edges in a graph without a delta.
  void ExpectExactEnds(const Graph& graph) const {
    const auto names = graph.vertex_types();
    const auto found = graph.edge_ends();
    ASSERT_EQ(found.size(), names.size() < 2 ? 0 : graph.edge_types().size());
    for (std::size_t t = 0; t < found.size(); ++t) {
      std::set<std::string> sources, destinations;
      for (const Edge& edge : edges_) {
        if (edge.type != graph.edge_types()[t]) continue;
        sources.insert(vertices_.at(edge.src).type);
        destinations.insert(vertices_.at(edge.dst).type);
      }
      EXPECT_EQ(NameOfEnd(names, found[t].source),
                sources.size() == 1 ? *sources.begin() : "several");
      EXPECT_EQ(NameOfEnd(names, found[t].destination),
                destinations.size() == 1 ? *destinations.begin() : "several");
    }
  }

  /// Compares every query of `graph` with the model. `directions` are those stored in the graph.
  void ExpectAgrees(const Graph& graph, Direction directions) const {
    EXPECT_EQ(graph.live_vertex_count(), vertices_.size());
    const auto count = graph.CountEdges();
    ASSERT_OK(count);
    EXPECT_EQ(*count, edges_.size());
    ExpectEnds(graph);
    std::vector<std::uint64_t> counts(graph.vertex_types().size(), 0);
    for (const auto& [id, vertex] : vertices_)
      for (std::size_t t = 0; t < counts.size(); ++t)
        if (graph.vertex_types()[t] == vertex.type) ++counts[t];
    EXPECT_EQ(graph.live_vertices_by_type(), counts);
    for (const std::string& id : gone_) {
      if (!vertices_.contains(id)) {
        EXPECT_STATUS(graph.FindText(id), kNotFound);
      }
    }
    for (const auto& [id, vertex] : vertices_) {
      SCOPED_TRACE("vertex " + id);
      const auto found = graph.FindText(id);
      ASSERT_OK(found);
      EXPECT_EQ(ToString(*graph.ExternalIdOf(*found)), id);
      EXPECT_EQ(*graph.VertexAt(*graph.RowOf(*found)), *found);
      EXPECT_EQ(graph.vertex_types()[*graph.TypeOf(*found)], vertex.type);
      EXPECT_FALSE(graph.IsDeleted(*found));
      ExpectRow(graph, *found, vertex);
      for (const Direction direction : {Direction::kOut, Direction::kIn}) {
        const bool kept = undirected_ || directions == Direction::kBoth || directions == direction;
        if (kept) ExpectList(graph, id, *found, direction);
      }
      if (::testing::Test::HasFailure()) return;
    }
  }

  /// Returns the neighbour list of a vertex, in order.
  std::vector<Entry> EntriesOf(const std::string& id, Direction direction) const {
    std::vector<Entry> entries;
    for (const Edge& edge : edges_) {
      const bool out = direction == Direction::kOut;
      if ((out ? edge.src : edge.dst) == id)
        entries.emplace_back(out ? edge.dst : edge.src, edge.type, edge.weight);
    }
    std::sort(entries.begin(), entries.end());
    return entries;
  }

  /// Translates a neighbour list of the engine into entries of the model, in order.
  static std::vector<Entry> Translated(const Graph& graph, const std::vector<Neighbor>& list) {
    std::vector<Entry> entries;
    for (const Neighbor& neighbor : list)
      entries.emplace_back(ToString(*graph.ExternalIdOf(neighbor.vertex)),
                           graph.edge_types()[neighbor.type], neighbor.weight);
    std::sort(entries.begin(), entries.end());
    return entries;
  }

 private:
  static std::string NameOfEnd(const std::vector<std::string>& names, TypeId end) {
    return end == kSeveralTypes ? "several" : names.at(end);
  }

  /// Checks that no edge has an end of another type than the graph reports.
  void ExpectEnds(const Graph& graph) const {
    const auto names = graph.vertex_types();
    const auto types = graph.edge_types();
    const auto found = graph.edge_ends();
    ASSERT_EQ(found.size(), names.size() < 2 ? 0 : types.size());
    for (const Edge& edge : edges_) {
      if (found.empty()) break;
      const auto at = std::find(types.begin(), types.end(), edge.type) - types.begin();
      const auto [source, destination] = found.at(static_cast<std::size_t>(at));
      if (source != kSeveralTypes) {
        EXPECT_EQ(names.at(source), vertices_.at(edge.src).type) << edge.type;
      }
      if (destination != kSeveralTypes) {
        EXPECT_EQ(names.at(destination), vertices_.at(edge.dst).type) << edge.type;
      }
    }
  }
  static std::vector<float> FirstRow(VertexId vertex) {
    const auto v = static_cast<float>(vertex);
    return {v, v * 2, v + 7};
  }

  template <typename Set>
  static std::string Nth(const Set& set, std::size_t n) {
    return *std::next(set.begin(), static_cast<std::ptrdiff_t>(n));
  }
  static ExternalId Parse(const std::string& id, bool string_ids) {
    return string_ids ? ExternalId(id) : ExternalId(*ParseCanonicalInteger(id));
  }

  void Touch(const std::string& id, const std::string& type) {
    vertices_.try_emplace(id, Vertex{type, std::vector<float>(kDim, 0)});
  }
  void Add(const Edge& edge) {
    edges_.push_back(edge);
    if (undirected_ && edge.src != edge.dst)
      edges_.push_back({edge.dst, edge.src, edge.type, edge.weight});
  }
  void Erase(const std::string& src, const std::string& dst, const std::string& type) {
    std::erase_if(edges_, [&](const Edge& edge) {
      return edge.src == src && edge.dst == dst && edge.type == type;
    });
  }

  void ExpectRow(const Graph& graph, VertexId vertex, const Vertex& expected) const {
    std::vector<float> row(kDim, -1);
    ASSERT_OK(
        graph.ReadRows("feat", std::span(&vertex, 1), std::as_writable_bytes(std::span(row))));
    EXPECT_EQ(row, expected.row);
  }

  void ExpectList(const Graph& graph, const std::string& id, VertexId vertex,
                  Direction direction) const {
    const std::vector<Entry> expected = EntriesOf(id, direction);
    const auto found = graph.Neighbors(vertex, direction);
    ASSERT_OK(found);
    EXPECT_EQ(Translated(graph, *found), expected);
    const auto degree = graph.Degree(vertex, direction);
    ASSERT_OK(degree);
    EXPECT_EQ(*degree, expected.size());
    for (std::size_t t = 0; t < graph.edge_types().size(); ++t) {
      const auto of_type = graph.NeighborsOfType(vertex, direction, static_cast<TypeId>(t));
      ASSERT_OK(of_type);
      std::vector<Entry> wanted = expected;
      std::erase_if(wanted,
                    [&](const Entry& e) { return std::get<1>(e) != graph.edge_types()[t]; });
      EXPECT_EQ(Translated(graph, *of_type), wanted);
    }
    ExpectPieces(graph, vertex, direction, *found);
  }

  // The view that samplers read must contain the same list.
  static void ExpectPieces(const Graph& live, VertexId vertex, Direction direction,
                           std::vector<Neighbor> expected) {
    const auto snapshot = live.Snapshot();
    const GraphSnapshot& graph = *snapshot;
    const auto view = graph.delta_view();
    ASSERT_OK(view);
    const Row row = *graph.RowOf(vertex);
    if (*view == nullptr || !(*view)->Touched(row, direction)) return;
    std::vector<Neighbor> found;
    std::uint64_t begin = 0;
    for (const auto& piece : (*view)->PiecesOf(row, direction)) {
      for (std::uint64_t i = 0; i < piece.end - begin; ++i) {
        const std::uint64_t position = piece.first + i;
        if (piece.partition == (*view)->partition()) {
          found.push_back({*graph.VertexAt((*view)->rows(direction)[position]),
                           (*view)->types(direction)[position],
                           graph.info().weighted ? (*view)->weights(direction)[position] : 1});
          continue;
        }
        const Adjacency& partition = graph.partition(piece.partition);
        std::vector<LocalId> scratch;
        const auto all = partition.Entries(piece.local, direction);
        const auto list = partition.FetchList(piece.local, direction, scratch);
        ASSERT_OK(list);
        found.push_back({*graph.VertexAt(partition.RowOf((*list)[position - all.first])),
                         partition.TypeOfEntry(piece.local, direction, position - all.first),
                         partition.Weight(direction, position)});
      }
      begin = piece.end;
    }
    std::sort(found.begin(), found.end(), ComesBefore);
    EXPECT_EQ(found, expected);
  }

  bool undirected_ = false;
  bool weighted_ = false;
  std::string first_vertex_type_;
  std::string first_edge_type_;
  std::map<std::string, Vertex> vertices_;
  std::vector<Edge> edges_;
  std::set<std::string> gone_;
};

}  // namespace rhizome::testing
