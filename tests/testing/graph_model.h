#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/graph.h"

namespace rhizome::testing {

/// A directed edge of the model.
struct ModelEdge {
  VertexId src = 0;
  VertexId dst = 0;
  TypeId type = 0;
  float weight = 1;
  friend auto operator<=>(const ModelEdge& a, const ModelEdge& b) {
    return std::tie(a.src, a.dst, a.type, a.weight) <=> std::tie(b.src, b.dst, b.type, b.weight);
  }
  friend bool operator==(const ModelEdge&, const ModelEdge&) = default;
};

inline bool ComesBefore(const Neighbor& a, const Neighbor& b) {
  return std::tie(a.type, a.vertex, a.weight) < std::tie(b.type, b.vertex, b.weight);
}

/// A graph as a list of edges. It answers every query by a scan of all edges; tests compare the
/// engine's answers with it.
class GraphModel {
 public:
  explicit GraphModel(const GraphInput& input)
      : vertex_count_(input.vertex_count), undirected_(input.undirected) {
    for (std::size_t e = 0; e < input.edges.size(); ++e) {
      const ModelEdge edge{input.edges.src[e], input.edges.dst[e],
                           input.edges.type.empty() ? TypeId{0} : input.edges.type[e],
                           input.edges.weight.empty() ? 1.0F : input.edges.weight[e]};
      edges_.push_back(edge);
      if (undirected_ && edge.src != edge.dst)
        edges_.push_back({edge.dst, edge.src, edge.type, edge.weight});
    }
  }

  const std::vector<ModelEdge>& edges() const { return edges_; }
  std::uint64_t vertex_count() const { return vertex_count_; }

  /// Returns the expected result of Graph::Neighbors or NeighborsOfType.
  std::vector<Neighbor> Neighbors(VertexId vertex, Direction direction,
                                  std::optional<TypeId> type = std::nullopt) const {
    if (direction == Direction::kBoth) {
      auto both = Neighbors(vertex, Direction::kOut, type);
      if (undirected_) return both;
      const auto in = Neighbors(vertex, Direction::kIn, type);
      both.insert(both.end(), in.begin(), in.end());
      return both;
    }
    std::vector<Neighbor> found;
    for (const ModelEdge& edge : edges_) {
      const bool out = direction == Direction::kOut;
      if ((out ? edge.src : edge.dst) != vertex || (type && edge.type != *type)) continue;
      found.push_back({out ? edge.dst : edge.src, edge.type, edge.weight});
    }
    std::sort(found.begin(), found.end(), ComesBefore);
    return found;
  }

 private:
  std::uint64_t vertex_count_;
  bool undirected_;
  std::vector<ModelEdge> edges_;
};

/// The options of RandomGraph.
struct RandomGraphOptions {
  std::uint64_t vertices = 20;  ///< some of them isolated
  std::uint64_t edges = 60;     ///< including self-loops and parallel edges
  std::uint32_t vertex_types = 1;
  std::uint32_t edge_types = 1;
  bool weighted = false;
  bool undirected = false;
  ExternalIdKind id_kind = ExternalIdKind::kDense;
};

inline std::vector<std::string> TypeNames(const std::string& prefix, std::uint32_t count) {
  std::vector<std::string> names;
  for (std::uint32_t t = 0; t < count; ++t) names.push_back(prefix + std::to_string(t));
  return names;
}

/// Draws distinct external ids in random order, some negative and some beyond 32 bits.
inline void DrawExternalIds(std::mt19937_64& rng, GraphInput& input) {
  for (std::uint64_t v = 0; v < input.vertex_count; ++v) {
    const auto noise = static_cast<std::int64_t>(rng() % 1000000);
    const auto id = (noise - 500000) * 100000 + static_cast<std::int64_t>(v);
    if (input.id_kind == ExternalIdKind::kInteger) input.integer_ids.push_back(id);
    if (input.id_kind == ExternalIdKind::kString)
      input.string_ids.push_back((rng() % 2 == 0 ? "höhle." : "") + std::to_string(id));
  }
}

/// Returns a typed multigraph with so few vertex pairs that parallel edges and self-loops are
/// common.
inline GraphInput RandomGraph(std::mt19937_64& rng, const RandomGraphOptions& options) {
  GraphInput input;
  input.vertex_count = options.vertices;
  input.undirected = options.undirected;
  input.vertex_type_names = TypeNames("vertex", options.vertex_types);
  input.edge_type_names = TypeNames("edge", options.edge_types);
  input.id_kind = options.id_kind;
  DrawExternalIds(rng, input);
  if (options.vertex_types > 1) {
    for (std::uint64_t v = 0; v < options.vertices; ++v)
      input.vertex_type.push_back(static_cast<TypeId>(rng() % options.vertex_types));
  }
  const std::uint64_t connected = std::max<std::uint64_t>(1, options.vertices * 4 / 5);
  const auto vertex = [&] {
    const std::uint64_t a = rng() % connected;
    const std::uint64_t b = rng() % connected;
    return static_cast<VertexId>(std::min(a, b));  // small ids are hubs
  };
  for (std::uint64_t e = 0; e < options.edges && options.vertices > 0; ++e) {
    input.edges.src.push_back(vertex());
    input.edges.dst.push_back(rng() % 8 == 0 ? input.edges.src.back() : vertex());
    if (options.edge_types > 1)
      input.edges.type.push_back(static_cast<TypeId>(rng() % options.edge_types));
    if (options.weighted)
      input.edges.weight.push_back(static_cast<float>(rng() % 16) / 4.0F - 1.0F);
  }
  return input;
}

}  // namespace rhizome::testing
