#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "index/chi_square.h"
#include "index/generation/graph_builder.h"
#include "index/sample/plain_neighbors.h"
#include "rhizome/sampler.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// A graph in a store of its own, in a temporary folder.
struct BuiltGraph {
  testing::TempDir folder;
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
};

inline BuildOptions RandomPartitions(std::uint32_t partitions,
                                     Direction directions = Direction::kBoth) {
  BuildOptions options;
  // The random partitioner makes nearly every vertex a boundary vertex.
  options.partition.kind = PartitionerKind::kRandom;
  options.partition.partitions = partitions;
  options.directions = directions;
  return options;
}

inline std::unique_ptr<BuiltGraph> Build(GraphInput input, const BuildOptions& options) {
  auto open = std::make_unique<BuiltGraph>();
  const Path path = open->folder / "graph.rz";
  FileSystem& fs = FileSystem::Posix();
  {
    auto store = Store::Create(fs, path, StoreId::Random());
    EXPECT_OK(store);
    if (!store) return nullptr;
    const Status built = BuildGeneration(**store, std::move(input), options, JobControl());
    EXPECT_OK(built);
    if (!built.ok()) return nullptr;
  }
  auto store = Store::Open(fs, path, Store::Mode::kRead);
  EXPECT_OK(store);
  if (!store) return nullptr;
  open->store = *std::move(store);
  auto graph = Graph::Open(std::as_const(*open->store));
  EXPECT_OK(graph);
  if (!graph) return nullptr;
  open->graph = *std::move(graph);
  return open;
}

inline GraphInput EmptyInput(std::uint64_t vertices) {
  GraphInput input;
  input.vertex_count = vertices;
  input.vertex_type_names = {"v"};
  input.edge_type_names = {"e"};
  return input;
}

// Returns random edges between a few hubs and many other vertices, with loops, parallel edges and
// isolated vertices.
inline GraphInput RandomInput(std::uint64_t vertices, std::uint64_t edges, bool rich,
                              std::uint64_t seed) {
  std::mt19937_64 random(seed);
  GraphInput input = EmptyInput(vertices);
  if (rich) input.edge_type_names = {"a", "b", "c"};
  const auto draw = [&] {
    return static_cast<VertexId>(random() % (random() % 3 == 0 ? 4 : vertices - vertices / 8));
  };
  for (std::uint64_t e = 0; e < edges; ++e) {
    input.edges.src.push_back(draw());
    input.edges.dst.push_back(draw());
    if (!rich) continue;
    input.edges.type.push_back(static_cast<TypeId>(random() % 3));
    input.edges.weight.push_back(static_cast<float>(random() % 1000));
  }
  return input;
}

// Returns a graph in which vertex 0 has an edge from each of 1 .. degree.
inline GraphInput StarInput(std::uint64_t degree) {
  GraphInput input = EmptyInput(degree + 1);
  for (std::uint64_t v = 1; v <= degree; ++v) {
    input.edges.src.push_back(static_cast<VertexId>(v));
    input.edges.dst.push_back(0);
  }
  return input;
}

inline std::unique_ptr<Sampler> MakeSampler(const GraphSnapshot& graph,
                                            const SamplerOptions& options) {
  auto sampler = Sampler::Create(graph, options);
  EXPECT_OK(sampler);
  return sampler ? *std::move(sampler) : nullptr;
}

inline SamplerOptions Fanouts(std::vector<std::int64_t> fanouts) {
  SamplerOptions options;
  options.fanouts = std::move(fanouts);
  return options;
}

inline bool Same(const SampledSubgraph& a, const SampledSubgraph& b) {
  return std::tie(a.rows, a.hop_offsets, a.seed_locals, a.offsets, a.neighbors, a.types, a.weights,
                  a.edges, a.hop_lists, a.seed_of) ==
         std::tie(b.rows, b.hop_offsets, b.seed_locals, b.offsets, b.neighbors, b.types, b.weights,
                  b.edges, b.hop_lists, b.seed_of);
}

// Returns the neighbours in list `list` of a sample (with Frontier::kOnce, those drawn for local
// vertex `list`).
inline std::vector<Neighbor> DrawnFor(const GraphSnapshot& graph, const SampledSubgraph& sample,
                                      std::size_t list) {
  std::vector<Neighbor> drawn;
  for (std::uint64_t e = sample.offsets[list]; e < sample.offsets[list + 1]; ++e) {
    const Row row = sample.rows[static_cast<std::size_t>(sample.neighbors[e])];
    drawn.push_back({*graph.VertexAt(row), sample.types.empty() ? TypeId{0} : sample.types[e],
                     sample.weights.empty() ? 1.0F : sample.weights[e]});
  }
  return drawn;
}

/// Counts how often each set of vertices was drawn for the first list of a sample of vertex 0, over
/// `batches` batches. `seed_times` is as in Sampler::Sample.
inline std::map<std::vector<VertexId>, double> CountSets(
    const GraphSnapshot& graph, const Sampler& sampler, std::uint64_t batches,
    const std::vector<std::int64_t>& seed_times = {}) {
  std::map<std::vector<VertexId>, double> observed;
  for (std::uint64_t batch = 0; batch < batches; ++batch) {
    const auto sample = sampler.Sample(std::vector<VertexId>{0}, seed_times, batch);
    EXPECT_OK(sample);
    if (!sample) return {};
    std::vector<VertexId> set;
    for (const Neighbor& n : DrawnFor(graph, *sample, 0)) set.push_back(n.vertex);
    std::sort(set.begin(), set.end());
    observed[set] += 1;
  }
  return observed;
}

inline void Sort(std::vector<Neighbor>& list) {
  std::sort(list.begin(), list.end(), [](const Neighbor& a, const Neighbor& b) {
    return std::tie(a.vertex, a.type, a.weight) < std::tie(b.vertex, b.type, b.weight);
  });
}

// Returns whether `part` is contained in `whole` as a multiset. Sorts both.
inline bool Contained(std::vector<Neighbor>& part, std::vector<Neighbor>& whole) {
  Sort(part);
  Sort(whole);
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end(),
                       [](const Neighbor& a, const Neighbor& b) {
                         return std::tie(a.vertex, a.type, a.weight) <
                                std::tie(b.vertex, b.type, b.weight);
                       });
}

inline std::vector<VertexId> AllVertices(const GraphSnapshot& graph) {
  std::vector<VertexId> vertices(graph.vertex_count());
  for (std::size_t v = 0; v < vertices.size(); ++v) vertices[v] = static_cast<VertexId>(v);
  return vertices;
}

/// Time stamps that are missing for every edge.
class NoTimes final : public EdgeTimes {
 public:
  std::span<const std::int64_t> OfPartition(std::uint32_t) const override { return {}; }
};

/// Neighbour lists in memory. Counts look-ups, and fails on request.
class CountingSource final : public NeighborSource {
 public:
  CountingSource(const GraphSnapshot& graph, bool whole_hops)
      : whole_hops_(whole_hops), lists_(graph, Direction::kIn) {}

  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override {
    looked_up += entries.size();
    if (++calls == fail_at) return Status::IoError("told to");
    return lists_.LookUp(entries, rows);
  }
  bool wants_whole_hops() const override { return whole_hops_; }

  mutable std::atomic<std::uint64_t> looked_up = 0;
  mutable std::atomic<std::uint64_t> calls = 0;
  std::atomic<std::uint64_t> fail_at = 0;

 private:
  const bool whole_hops_;
  const PlainNeighbors lists_;
};

/// Compares observed outcomes with their probabilities, which add up to 1, by a chi-square test.
template <typename Outcome>
void ExpectLaw(const std::map<Outcome, double>& observed,
               const std::map<Outcome, double>& probability, double trials) {
  for (const auto& [outcome, count] : observed) {
    const auto possible = probability.find(outcome);
    ASSERT_TRUE(possible != probability.end() && possible->second > 0) << "an impossible outcome";
  }
  double statistic = 0;
  std::size_t outcomes = 0;
  for (const auto& [outcome, p] : probability) {
    if (p <= 0) continue;
    const auto found = observed.find(outcome);
    const double count = found == observed.end() ? 0 : found->second;
    statistic += (count - trials * p) * (count - trials * p) / (trials * p);
    ++outcomes;
  }
  if (outcomes > 1) {
    EXPECT_LT(statistic, ChiSquareBound(outcomes - 1));
  }
}

}  // namespace rhizome::testing
