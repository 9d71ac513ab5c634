#include "index/partition/streaming_partitioner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "index/partition_graphs.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

const std::vector<PartitionerKind> kStreaming = PartitionerKinds(/*streaming=*/true);

std::unique_ptr<StreamingPartitioner> Stream(const TestGraph& graph,
                                             const PartitionOptions& options,
                                             std::vector<PartitionId>& parts) {
  auto partitioner = StreamingPartitioner::Create(graph.vertex_count, graph.src.size(), options);
  EXPECT_OK(partitioner);
  if ((*partitioner)->needs_degrees()) {
    for (std::size_t e = 0; e < graph.src.size(); ++e) {
      (*partitioner)->CountDegrees(graph.src[e], graph.dst[e]);
    }
  }
  for (std::size_t e = 0; e < graph.src.size(); ++e) {
    parts.push_back((*partitioner)->Assign(graph.src[e], graph.dst[e]));
  }
  return std::move(*partitioner);
}

TEST(StreamingPartitionerTest, OnePassGivesWhatPartitionEdgesGives) {
  const std::uint64_t seed = testing::TestSeed();
  for (const TestGraph& graph : LargerGraphs(seed)) {
    for (const PartitionerKind kind : kStreaming) {
      PartitionOptions options{.kind = kind, .partitions = 6, .seed = seed};
      std::vector<PartitionId> parts;
      Stream(graph, options, parts);
      EXPECT_EQ(parts, Partition(graph, options)) << graph.name << PartitionerName(kind);
    }
  }
}

TEST(StreamingPartitionerTest, MetricsAndReplicasNeedNoSecondPass) {
  const std::uint64_t seed = testing::TestSeed();
  for (const std::uint32_t partitions : {3u, 17u, 130u}) {
    for (const TestGraph& graph : LargerGraphs(seed)) {
      PartitionOptions options{.kind = PartitionerKind::kHdrf, .partitions = partitions};
      std::vector<PartitionId> parts;
      const auto partitioner = Stream(graph, options, parts);
      const PartitionMetrics expected = BruteForce(graph, parts, partitions);
      const PartitionMetrics metrics = partitioner->Metrics();
      EXPECT_DOUBLE_EQ(metrics.replication_factor, expected.replication_factor);
      EXPECT_DOUBLE_EQ(metrics.vertex_balance, expected.vertex_balance);
      EXPECT_DOUBLE_EQ(metrics.edge_balance, expected.edge_balance);
      EXPECT_DOUBLE_EQ(metrics.interior_share, expected.interior_share);
      EXPECT_LE(partitioner->memory_bytes(),
                StreamingPartitioner::EstimateBytes(options.kind, graph.vertex_count, partitions));
    }
  }
}

TEST(StreamingPartitionerTest, OwnersHoldEdgesAndFollowTheMajority) {
  // Vertex 0 has three edges in range 0 and one in range 1.
  TestGraph graph{.name = "fork", .vertex_count = 12, .src = {}, .dst = {}};
  graph.Add(0, 1);
  graph.Add(0, 2);
  graph.Add(0, 3);
  graph.Add(5, 0);
  graph.Add(5, 6);
  graph.Add(6, 7);
  PartitionOptions options{.kind = PartitionerKind::kRange, .partitions = 2};
  std::vector<PartitionId> parts;
  const std::vector<PartitionId> owners = Stream(graph, options, parts)->ChooseOwners();
  EXPECT_EQ(parts, (std::vector<PartitionId>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(owners[0], 0);
  EXPECT_EQ(std::count(owners.begin(), owners.end(), 0), 6);

  const std::uint64_t seed = testing::TestSeed();
  for (const TestGraph& larger : LargerGraphs(seed)) {
    for (const PartitionerKind kind : kStreaming) {
      options = {.kind = kind, .partitions = 7, .seed = seed};
      parts.clear();
      const auto partitioner = Stream(larger, options, parts);
      const std::vector<PartitionId> chosen = partitioner->ChooseOwners();
      ASSERT_EQ(chosen.size(), larger.vertex_count);
      for (std::size_t v = 0; v < chosen.size(); ++v) {
        ASSERT_LT(chosen[v], 7);
        EXPECT_TRUE(partitioner->replicas().Size(v) == 0 ||
                    partitioner->replicas().Has(v, chosen[v]));
      }
    }
  }
}

// Follows the choices that were made, and compares each with the score over all partitions as
// defined by Petroni et al., with epsilon 1.
void ExpectHighestScores(const TestGraph& graph, const std::vector<PartitionId>& parts,
                         std::uint32_t partitions, const PartitionOptions& options) {
  const double mean = static_cast<double>(graph.src.size()) / partitions;
  const double cap = std::max(std::ceil(mean), std::floor(mean * options.max_edge_balance));
  std::map<VertexId, double> degree;
  std::map<VertexId, std::set<std::uint32_t>> replicas;
  std::vector<double> size(partitions);
  for (std::size_t e = 0; e < graph.src.size(); ++e) {
    const VertexId u = graph.src[e];
    const VertexId v = graph.dst[e];
    degree[u] += 1;
    if (v != u) degree[v] += 1;
    const double theta_u = degree[u] / (degree[u] + degree[v]);
    const double theta_v = degree[v] / (degree[u] + degree[v]);
    const double most = *std::max_element(size.begin(), size.end());
    const double least = *std::min_element(size.begin(), size.end());
    const auto score = [&](std::uint32_t p) {
      const double g_u = replicas[u].contains(p) ? 1 + (1 - theta_u) : 0;
      const double g_v = replicas[v].contains(p) ? 1 + (1 - theta_v) : 0;
      return g_u + g_v + options.hdrf_lambda * (most - size[p]) / (1 + most - least);
    };
    double best = 0;
    for (std::uint32_t p = 0; p < partitions; ++p) {
      if (size[p] < cap) best = std::max(best, score(p));
    }
    ASSERT_LT(size[parts[e]], cap);
    ASSERT_GE(score(parts[e]), best - 1e-9) << graph.name << ", edge " << e;
    size[parts[e]] += 1;
    replicas[u].insert(parts[e]);
    replicas[v].insert(parts[e]);
  }
}

TEST(StreamingPartitionerTest, HdrfTakesTheHighestPublishedScore) {
  const std::uint64_t seed = testing::TestSeed();
  for (const TestGraph& graph : {Rmat(9, 6000, seed), Multigraph(300, 4000, seed), Grid(40),
                                 Cliques(20, 12), Star(500), Crumbs(300)}) {
    for (const double lambda : {0.5, 1.1, 4.0}) {
      PartitionOptions options{.kind = PartitionerKind::kHdrf, .partitions = 5};
      options.hdrf_lambda = lambda;
      ExpectHighestScores(graph, Partition(graph, options), 5, options);
    }
  }
}

TEST(StreamingPartitionerTest, HdrfKeepsTheCapAndRangesHaveEqualShares) {
  const std::uint64_t seed = testing::TestSeed();
  for (const TestGraph& graph : LargerGraphs(seed)) {
    PartitionOptions options{.kind = PartitionerKind::kHdrf, .partitions = 8};
    options.hdrf_lambda = 0;  // only the cap enforces balance
    EXPECT_LE(BruteForce(graph, Partition(graph, options), 8).edge_balance, 1.05) << graph.name;
  }
  // Every source has one edge, so the sizes of the ranges differ by at most one.
  const TestGraph path = PathGraph(1001);
  const PartitionOptions options{.kind = PartitionerKind::kRange, .partitions = 8};
  const std::vector<PartitionId> parts = Partition(path, options);
  EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
  for (PartitionId p = 0; p < 8; ++p) EXPECT_EQ(std::count(parts.begin(), parts.end(), p), 125);
}

TEST(StreamingPartitionerTest, DbhHashesTheEndOfLowerDegree) {
  const TestGraph graph = Rmat(11, 30000, testing::TestSeed());
  std::map<VertexId, int> degree;
  for (std::size_t e = 0; e < graph.src.size(); ++e) {
    ++degree[graph.src[e]];
    if (graph.dst[e] != graph.src[e]) ++degree[graph.dst[e]];
  }
  const PartitionOptions options{.kind = PartitionerKind::kDbh, .partitions = 9};
  const std::vector<PartitionId> parts = Partition(graph, options);
  std::map<VertexId, PartitionId> of_key;
  for (std::size_t e = 0; e < parts.size(); ++e) {
    const VertexId u = graph.src[e];
    const VertexId v = graph.dst[e];
    const VertexId key = degree[u] != degree[v] ? (degree[u] < degree[v] ? u : v) : std::min(u, v);
    const auto [known, added] = of_key.emplace(key, parts[e]);
    EXPECT_EQ(known->second, parts[e]);
  }
}

TEST(StreamingPartitionerTest, KindsThatNeedAllEdgesAreRefused) {
  for (const PartitionerKind kind :
       {PartitionerKind::kRefined, PartitionerKind::kAdaDne, PartitionerKind::kDne}) {
    EXPECT_FALSE(StreamingPartitioner::Supports(kind));
    EXPECT_STATUS(StreamingPartitioner::Create(10, 10, {.kind = kind}), kInvalidArgument);
  }
  EXPECT_STATUS(
      StreamingPartitioner::Create(10, 10, {.kind = PartitionerKind::kHdrf, .partitions = 0}),
      kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
