#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "index/partition/partitioner.h"
#include "index/partition/partitioner_table.h"
#include "testing/testing.h"

// Graphs that partitioners must handle, and metrics computed from their definitions.

namespace rhizome {

/// Returns all partitioners, or only the streaming ones.
inline std::vector<PartitionerKind> PartitionerKinds(bool streaming) {
  std::vector<PartitionerKind> kinds;
  for (const PartitionerEntry& entry : AllPartitioners()) {
    if (!streaming || entry.stream != nullptr) kinds.push_back(entry.kind);
  }
  return kinds;
}

/// In the order of their numbers.
inline const std::vector<PartitionerKind> kAllPartitioners = PartitionerKinds(/*streaming=*/false);

/// A graph that owns its columns. Inputs are spans of them.
struct TestGraph {
  std::string name;
  std::uint64_t vertex_count = 0;
  std::vector<VertexId> src;
  std::vector<VertexId> dst;

  PartitionInput input() const { return PartitionInput(vertex_count, src, dst); }
  void Add(std::uint64_t u, std::uint64_t v) {
    src.push_back(static_cast<VertexId>(u));
    dst.push_back(static_cast<VertexId>(v));
  }
};

// Returns an R-MAT graph with probabilities .57, .19, .19, .05, which has skewed degrees.
inline TestGraph Rmat(int scale, std::uint64_t edges, std::uint64_t seed) {
  TestGraph graph{.name = "rmat", .vertex_count = std::uint64_t{1} << scale, .src = {}, .dst = {}};
  std::mt19937_64 random(seed);
  for (std::uint64_t e = 0; e < edges; ++e) {
    std::uint64_t u = 0;
    std::uint64_t v = 0;
    for (int bit = 0; bit < scale; ++bit) {
      const std::uint64_t x = random() % 100;
      u = 2 * u + (x >= 76);
      v = 2 * v + ((x >= 57 && x < 76) || x >= 95);
    }
    graph.Add(u, v);
  }
  return graph;
}

inline TestGraph PathGraph(std::uint64_t vertices) {
  TestGraph graph{.name = "path", .vertex_count = vertices, .src = {}, .dst = {}};
  for (std::uint64_t v = 1; v < vertices; ++v) graph.Add(v - 1, v);
  return graph;
}

inline TestGraph Star(std::uint64_t leaves) {
  TestGraph graph{.name = "star", .vertex_count = leaves + 1, .src = {}, .dst = {}};
  for (std::uint64_t v = 1; v <= leaves; ++v) graph.Add(0, v);
  return graph;
}

inline TestGraph Grid(std::uint64_t side) {
  TestGraph graph{.name = "grid", .vertex_count = side * side, .src = {}, .dst = {}};
  for (std::uint64_t y = 0; y < side; ++y) {
    for (std::uint64_t x = 0; x < side; ++x) {
      if (x + 1 < side) graph.Add(y * side + x, y * side + x + 1);
      if (y + 1 < side) graph.Add(y * side + x, (y + 1) * side + x);
    }
  }
  return graph;
}

// Returns disjoint complete graphs.
inline TestGraph Cliques(std::uint64_t count, std::uint64_t size) {
  TestGraph graph{.name = "cliques", .vertex_count = count * size, .src = {}, .dst = {}};
  for (std::uint64_t c = 0; c < count; ++c) {
    for (std::uint64_t u = 0; u < size; ++u) {
      for (std::uint64_t v = u + 1; v < size; ++v) graph.Add(c * size + u, c * size + v);
    }
  }
  return graph;
}

// Returns many components of one or two edges, some of them loops, with isolated vertices between
// them.
inline TestGraph Crumbs(std::uint64_t count) {
  TestGraph graph{.name = "crumbs", .vertex_count = 5 * count, .src = {}, .dst = {}};
  for (std::uint64_t c = 0; c < count; ++c) {
    graph.Add(5 * c, 5 * c + 1);
    if (c % 2 == 0) graph.Add(5 * c + 1, 5 * c + 2);
    if (c % 3 == 0) graph.Add(5 * c + 2, 5 * c + 2);
  }
  return graph;
}

// Returns a graph with so few vertices that most edges are parallel to others. It has loops.
inline TestGraph Multigraph(std::uint64_t vertices, std::uint64_t edges, std::uint64_t seed) {
  TestGraph graph{.name = "multigraph", .vertex_count = vertices, .src = {}, .dst = {}};
  std::mt19937_64 random(seed);
  for (std::uint64_t e = 0; e < edges; ++e) graph.Add(random() % vertices, random() % vertices);
  return graph;
}

// Returns a graph with half of its edges in a dense core and half in a path, so that equal numbers
// of edges mean unequal numbers of vertices.
inline TestGraph CliqueAndPath(std::uint64_t size) {
  TestGraph graph = Cliques(1, size);
  graph.name = "clique and path";
  const std::uint64_t edges = graph.src.size();
  graph.vertex_count += edges;
  for (std::uint64_t i = 0; i < edges; ++i) graph.Add(size + i - 1, size + i);
  return graph;
}

inline std::vector<TestGraph> LargerGraphs(std::uint64_t seed) {
  std::vector<TestGraph> graphs;
  graphs.push_back(Rmat(12, 40000, seed));
  graphs.push_back(PathGraph(20000));
  graphs.push_back(Star(20000));
  graphs.push_back(Grid(120));
  graphs.push_back(Cliques(40, 30));
  graphs.push_back(Crumbs(6000));
  graphs.push_back(Multigraph(2000, 30000, seed));
  graphs.push_back(CliqueAndPath(120));
  return graphs;
}

inline std::vector<PartitionId> Partition(const TestGraph& graph, const PartitionOptions& options) {
  const JobControl control;
  Result<std::vector<PartitionId>> result = PartitionEdges(graph.input(), options, control);
  EXPECT_OK(result);
  return result ? *std::move(result) : std::vector<PartitionId>();
}

inline PartitionMetrics Measure(const TestGraph& graph, const std::vector<PartitionId>& parts,
                                std::uint32_t partitions) {
  const Result<PartitionMetrics> metrics = MeasurePartition(graph.input(), parts, partitions);
  EXPECT_OK(metrics);
  return metrics ? *metrics : PartitionMetrics();
}

inline std::vector<PartitionId> Owners(const TestGraph& graph,
                                       const std::vector<PartitionId>& parts,
                                       std::uint32_t partitions) {
  Result<std::vector<PartitionId>> owners = ChooseOwners(graph.input(), parts, partitions);
  EXPECT_OK(owners);
  return owners ? *std::move(owners) : std::vector<PartitionId>();
}

// Computes the metrics from their definitions.
inline PartitionMetrics BruteForce(const TestGraph& graph, const std::vector<PartitionId>& parts,
                                   std::uint32_t partitions) {
  std::map<VertexId, std::set<PartitionId>> replicas;
  std::vector<double> edges(partitions);
  std::vector<double> vertices(partitions);
  for (std::size_t e = 0; e < parts.size(); ++e) {
    edges[parts[e]] += 1;
    replicas[graph.src[e]].insert(parts[e]);
    replicas[graph.dst[e]].insert(parts[e]);
  }
  double total = 0;
  double interior = 0;
  for (const auto& [vertex, set] : replicas) {
    total += static_cast<double>(set.size());
    interior += set.size() == 1;
    for (const PartitionId p : set) vertices[p] += 1;
  }
  const auto present = static_cast<double>(replicas.size());
  const auto max_over_min = [](const std::vector<double>& load) {
    return *std::max_element(load.begin(), load.end()) /
           *std::min_element(load.begin(), load.end());
  };
  return {total / present,
          *std::max_element(vertices.begin(), vertices.end()) / (total / partitions),
          *std::max_element(edges.begin(), edges.end()) /
              (static_cast<double>(parts.size()) / partitions),
          interior / present,
          max_over_min(vertices),
          max_over_min(edges)};
}

}  // namespace rhizome
