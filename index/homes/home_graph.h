#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/partition/partition_input.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// A number of rows, and the number of seeds among them: the load of a home, a vertex or a cluster,
/// or the cap on a load.
struct HomeLoad {
  std::uint64_t rows = 0;
  std::uint64_t seeds = 0;

  HomeLoad& operator+=(const HomeLoad& other) {
    rows += other.rows;
    seeds += other.seeds;
    return *this;
  }
  HomeLoad& operator-=(const HomeLoad& other) {
    rows -= other.rows;
    seeds -= other.seeds;
    return *this;
  }
  friend HomeLoad operator+(HomeLoad a, const HomeLoad& b) { return a += b; }
  bool Within(const HomeLoad& cap) const { return rows <= cap.rows && seeds <= cap.seeds; }
};

/// Errors: kInvalidArgument, a seed that is not a vertex in [0, vertices).
Status CheckSeeds(std::span<const VertexId> seeds, std::uint64_t vertices);

/// An undirected graph with edge weights and vertex loads: the input at the finest level, clusters
/// of its vertices at coarser levels. Parallel edges of the input add up; self-loops are ignored.
/// Memory: 4 bytes a half-edge and 12 a vertex at the finest level, 8 and 16 at the others.
class HomeGraph {
 public:
  /// Errors: kInvalidArgument, more vertices or edges than 32 bits can number, or a seed that is
  /// not a vertex or is repeated; any error of scanning the edges.
  static Result<HomeGraph> Create(const PartitionInput& input, std::span<const VertexId> seeds);

  /// Returns the contracted graph: its vertex c represents all vertices v with cluster_of[v] = c.
  HomeGraph Contract(std::span<const std::uint32_t> cluster_of, std::uint32_t clusters) const;

  /// Returns the subgraph of `vertices` and the edges between them; vertices[i] becomes vertex i.
  HomeGraph Induce(std::span<const std::uint32_t> vertices) const;

  std::uint32_t vertex_count() const { return static_cast<std::uint32_t>(offsets_.size() - 1); }
  std::uint64_t half_edge_count() const { return neighbors_.size(); }
  std::uint64_t degree(std::uint32_t v) const { return offsets_[v + 1] - offsets_[v]; }
  HomeLoad load(std::uint32_t v) const { return {rows_.empty() ? 1 : rows_[v], seeds_[v]}; }

  /// Return the sum of the loads of all vertices, and the maxima of the rows and of the seeds of
  /// one vertex.
  HomeLoad total() const;
  HomeLoad largest() const;

  /// Calls visit(neighbor, weight) for each half-edge of v, both std::uint32_t.
  template <typename Visit>
  void ForEachNeighbor(std::uint32_t v, Visit visit) const {
    for (std::uint64_t i = offsets_[v]; i < offsets_[v + 1]; ++i)
      visit(neighbors_[i], weights_.empty() ? 1 : weights_[i]);
  }

 private:
  HomeGraph() = default;

  std::vector<std::uint64_t> offsets_ = {0};
  std::vector<std::uint32_t> neighbors_;
  std::vector<std::uint32_t> weights_;  // by half-edge; empty: all are 1
  std::vector<std::uint32_t> rows_;     // by vertex; empty: all are 1
  std::vector<std::uint32_t> seeds_;    // by vertex
};

}  // namespace internal
}  // namespace rhizome
