#include "index/partition/partitioner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "index/partition/expansion_partitioner.h"
#include "index/partition_graphs.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

TEST(PartitionerTest, NamesAreReadBack) {
  for (const PartitionerKind kind : kAllPartitioners) {
    EXPECT_EQ(ParsePartitioner(PartitionerName(kind)), kind);
  }
  EXPECT_EQ(ParsePartitioner("metis"), std::nullopt);
}

// Older stores contain "adadne" for the partitioner that is now called refined.
TEST(PartitionerTest, NamesInStoresAreReadBackAndOldOnesAsTheyWereMeant) {
  for (const PartitionerKind kind : kAllPartitioners) {
    EXPECT_EQ(ParseStoredPartitioner(StoredPartitionerName(kind)), kind);
  }
  EXPECT_EQ(ParseStoredPartitioner("adadne"), PartitionerKind::kRefined);
  EXPECT_NE(StoredPartitionerName(PartitionerKind::kAdaDne), "adadne");
}

TEST(PartitionerTest, MetricsEqualTheirDefinition) {
  const std::uint64_t seed = testing::TestSeed();
  for (const TestGraph& graph : LargerGraphs(seed)) {
    for (const PartitionerKind kind : kAllPartitioners) {
      PartitionOptions options{.kind = kind};
      options.partitions = 6;
      options.seed = seed;
      const std::vector<PartitionId> parts = Partition(graph, options);
      ASSERT_EQ(parts.size(), graph.src.size());
      for (const PartitionId p : parts) ASSERT_LT(p, options.partitions);
      const PartitionMetrics measured = Measure(graph, parts, 6);
      const PartitionMetrics expected = BruteForce(graph, parts, 6);
      EXPECT_DOUBLE_EQ(measured.replication_factor, expected.replication_factor);
      EXPECT_DOUBLE_EQ(measured.vertex_balance, expected.vertex_balance);
      EXPECT_DOUBLE_EQ(measured.edge_balance, expected.edge_balance);
      EXPECT_DOUBLE_EQ(measured.interior_share, expected.interior_share);
      EXPECT_DOUBLE_EQ(measured.vertex_max_over_min, expected.vertex_max_over_min);
      EXPECT_DOUBLE_EQ(measured.edge_max_over_min, expected.edge_max_over_min);
    }
  }
}

TEST(PartitionerTest, MetricsOfNothingAreOne) {
  const PartitionMetrics metrics =
      Measure({.name = "nothing", .vertex_count = 3, .src = {}, .dst = {}}, {}, 4);
  EXPECT_EQ(metrics.replication_factor, 1);
  EXPECT_EQ(metrics.vertex_balance, 1);
  EXPECT_EQ(metrics.edge_balance, 1);
  EXPECT_EQ(metrics.interior_share, 1);
}

TEST(PartitionerTest, RefinedKeepsTheBoundsOfBalance) {
  const std::uint64_t seed = testing::TestSeed();
  for (const TestGraph& graph : LargerGraphs(seed)) {
    for (const std::uint32_t partitions : {2u, 5u, 8u, 70u}) {
      PartitionOptions options;
      options.partitions = partitions;
      options.seed = seed;
      const std::vector<PartitionId> parts = Partition(graph, options);
      const PartitionMetrics metrics = Measure(graph, parts, partitions);
      // A partition with few edges may have one edge more than the mean.
      const double mean = static_cast<double>(parts.size()) / partitions;
      EXPECT_LE(metrics.edge_balance, std::max(1.05, 1 + 1 / mean)) << graph.name << partitions;
      EXPECT_LE(metrics.vertex_balance, 1.3) << graph.name << " in " << partitions;
    }
  }
}

TEST(PartitionerTest, RefinedCutsFewVerticesWhereFewNeedBeCut) {
  PartitionOptions options;
  options.partitions = 8;
  const std::map<std::string, double> bounds = {
      {"path", 1.01}, {"grid", 1.10}, {"cliques", 1.10}, {"crumbs", 1.01}, {"star", 1.01}};
  for (const TestGraph& graph : LargerGraphs(1)) {
    const auto bound = bounds.find(graph.name);
    if (bound == bounds.end()) continue;
    const PartitionMetrics metrics = Measure(graph, Partition(graph, options), options.partitions);
    EXPECT_LE(metrics.replication_factor, bound->second) << graph.name;
  }
}

TEST(PartitionerTest, RefinedReplicatesFarLessThanHashing) {
  const TestGraph graph = Rmat(14, 200000, testing::TestSeed());
  PartitionOptions options;
  options.partitions = 8;
  const double refined = Measure(graph, Partition(graph, options), 8).replication_factor;
  options.kind = PartitionerKind::kHash2d;
  const double hash2d = Measure(graph, Partition(graph, options), 8).replication_factor;
  options.kind = PartitionerKind::kRandom;
  const double random = Measure(graph, Partition(graph, options), 8).replication_factor;
  EXPECT_LT(refined, 0.75 * hash2d);
  EXPECT_LT(hash2d, random);
}

TEST(PartitionerTest, TheResultDependsOnTheSeedAndNotOnTheThreads) {
  const TestGraph graph = Rmat(11, 20000, testing::TestSeed());
  for (const PartitionerKind kind : kAllPartitioners) {
    PartitionOptions options{.kind = kind};
    options.partitions = 4;
    const std::vector<PartitionId> first = Partition(graph, options);
    EXPECT_EQ(Partition(graph, options), first);
    options.threads = 3;
    EXPECT_EQ(Partition(graph, options), first);
    options.seed = 2;
    if (kind == PartitionerKind::kHdrf || kind == PartitionerKind::kRange) {
      EXPECT_EQ(Partition(graph, options), first);  // no random choices
    } else {
      EXPECT_NE(Partition(graph, options), first);
    }
  }
}

TEST(PartitionerTest, WideNumbersGiveTheSameResult) {
  const TestGraph graph = Rmat(11, 20000, testing::TestSeed());
  PartitionOptions options;
  options.partitions = 7;
  const JobControl control;
  const auto narrow =
      PartitionByExpansion<std::uint32_t, std::uint8_t>(graph.input(), options, control);
  const auto wide =
      PartitionByExpansion<std::uint64_t, std::uint16_t>(graph.input(), options, control);
  ASSERT_OK(narrow);
  ASSERT_OK(wide);
  EXPECT_EQ(narrow->partition_of_edge, wide->partition_of_edge);
  EXPECT_EQ(narrow->owners, wide->owners);
}

// A multigraph with self-loops and isolated vertices.
TEST(PartitionerTest, DividedEdgesAreMeasuredAndOwnedAsByTheSeparateFunctions) {
  const std::uint64_t seed = testing::TestSeed();
  TestGraph graph = Multigraph(300, 2000, seed);
  graph.vertex_count += 10;
  const JobControl control;
  for (const PartitionerKind kind : Partitioners()) {
    for (const std::uint32_t partitions : {1U, 2U, 9U, 70U}) {
      const PartitionOptions options{.kind = kind, .partitions = partitions, .seed = seed};
      const auto divided = DivideEdges(graph.input(), options, control);
      ASSERT_OK(divided);
      const std::vector<PartitionId> parts = Partition(graph, options);
      EXPECT_EQ(divided->partition_of_edge, partitions == 1 ? std::vector<PartitionId>() : parts);
      EXPECT_EQ(divided->owners, Owners(graph, parts, partitions)) << PartitionerName(kind);
      const PartitionMetrics metrics = Measure(graph, parts, partitions);
      EXPECT_EQ(divided->metrics.replication_factor, metrics.replication_factor);
      EXPECT_EQ(divided->metrics.vertex_balance, metrics.vertex_balance);
      EXPECT_EQ(divided->metrics.edge_balance, metrics.edge_balance);
      EXPECT_EQ(divided->metrics.interior_share, metrics.interior_share);
      EXPECT_EQ(divided->metrics.vertex_max_over_min, metrics.vertex_max_over_min);
      EXPECT_EQ(divided->metrics.edge_max_over_min, metrics.edge_max_over_min);
    }
  }
}

TEST(PartitionerTest, Hash2dBoundsTheReplicasOfAVertex) {
  const TestGraph graph = Multigraph(50, 20000, testing::TestSeed());
  PartitionOptions options{.kind = PartitionerKind::kHash2d};
  options.partitions = 12;  // a grid of 3 x 4
  const std::vector<PartitionId> parts = Partition(graph, options);
  std::map<VertexId, std::set<PartitionId>> as_source;
  std::map<VertexId, std::set<PartitionId>> as_destination;
  for (std::size_t e = 0; e < parts.size(); ++e) {
    as_source[graph.src[e]].insert(parts[e]);
    as_destination[graph.dst[e]].insert(parts[e]);
  }
  for (const auto& [vertex, set] : as_source) EXPECT_LE(set.size(), 4);
  for (const auto& [vertex, set] : as_destination) EXPECT_LE(set.size(), 3);
}

TEST(PartitionerTest, SmallAndDegenerateGraphsAreDivided) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    const TestGraph graph = Multigraph(1 + random() % 12, random() % 20, random());
    PartitionOptions options{
        .kind = kAllPartitioners[static_cast<std::size_t>(trial) % std::size(kAllPartitioners)]};
    options.partitions = static_cast<std::uint32_t>(1 + random() % 9);
    options.seed = random();
    const std::vector<PartitionId> parts = Partition(graph, options);
    ASSERT_EQ(parts.size(), graph.src.size());
    std::vector<std::size_t> edges(options.partitions);
    for (const PartitionId p : parts) {
      ASSERT_LT(p, options.partitions);
      ++edges[p];
    }
    const bool capped = options.kind == PartitionerKind::kRefined ||
                        options.kind == PartitionerKind::kDne ||
                        options.kind == PartitionerKind::kHdrf;
    if (!capped) continue;
    const std::size_t least = (parts.size() + options.partitions - 1) / options.partitions;
    EXPECT_LE(*std::max_element(edges.begin(), edges.end()),
              std::max<std::size_t>(least, parts.size() * 105 / 100 / options.partitions));
  }
}

TEST(PartitionerTest, BadOptionsAndInputsAreRefused) {
  const TestGraph graph = PathGraph(10);
  const JobControl control;
  const auto refused = [&](auto change) {
    PartitionOptions options;
    change(options);
    return PartitionEdges(graph.input(), options, control);
  };
  EXPECT_STATUS(refused([](auto& o) { o.partitions = 0; }), kInvalidArgument);
  EXPECT_STATUS(refused([](auto& o) { o.partitions = kMaxPartitions + 1; }), kInvalidArgument);
  EXPECT_STATUS(refused([](auto& o) { o.max_edge_balance = 0.9; }), kInvalidArgument);
  EXPECT_STATUS(refused([](auto& o) { o.max_vertex_balance = std::nan(""); }), kInvalidArgument);
  EXPECT_STATUS(refused([](auto& o) { o.hdrf_lambda = -1; }), kInvalidArgument);
  EXPECT_STATUS(refused([](auto& o) { o.hdrf_lambda = std::nan(""); }), kInvalidArgument);

  const std::vector<VertexId> good = {0, 1};
  for (const std::vector<VertexId>& bad :
       {std::vector<VertexId>{0}, std::vector<VertexId>{0, 2}, std::vector<VertexId>{-1, 0}}) {
    const PartitionInput input(2, good, bad);
    EXPECT_STATUS(PartitionEdges(input, {}, control), kInvalidArgument);
  }
}

// Returns the graph's edges in blocks of random lengths that differ in every pass.
PartitionInput Scanned(const TestGraph& graph, std::mt19937_64& random) {
  return PartitionInput(
      graph.vertex_count, graph.src.size(), [&](const PartitionInput::Visit& visit) {
        for (std::size_t begin = 0; begin < graph.src.size();) {
          const std::size_t count =
              std::min<std::size_t>(random() % 1000, graph.src.size() - begin);
          const Status visited = visit(std::span(graph.src).subspan(begin, count),
                                       std::span(graph.dst).subspan(begin, count));
          if (!visited.ok()) return visited;
          begin += count;
        }
        return Status::Ok();
      });
}

TEST(PartitionerTest, EdgesThatAreScannedGiveTheSameResultAsEdgesInMemory) {
  std::mt19937_64 random(testing::TestSeed());
  const TestGraph graph = Rmat(11, 20000, random());
  const PartitionInput scanned = Scanned(graph, random);
  const JobControl control;
  for (const PartitionerKind kind : kAllPartitioners) {
    PartitionOptions options{.kind = kind};
    options.partitions = 5;
    const auto parts = PartitionEdges(scanned, options, control);
    ASSERT_OK(parts);
    EXPECT_EQ(*parts, Partition(graph, options));
    const auto metrics = MeasurePartition(scanned, *parts, 5);
    ASSERT_OK(metrics);
    EXPECT_EQ(metrics->replication_factor, Measure(graph, *parts, 5).replication_factor);
    const auto owners = ChooseOwners(scanned, *parts, 5);
    ASSERT_OK(owners);
    EXPECT_EQ(*owners, Owners(graph, *parts, 5));
  }
}

TEST(PartitionerTest, WhatGoesWrongInAScanIsToldInAnyPass) {
  const TestGraph graph = Rmat(8, 2000, testing::TestSeed());
  const JobControl control;
  for (const PartitionerKind kind : kAllPartitioners) {
    PartitionOptions options{.kind = kind};
    options.partitions = 3;
    int failing = 0;
    int pass = 0;
    const PartitionInput input(graph.vertex_count, graph.src.size(),
                               [&](const PartitionInput::Visit& visit) {
                                 if (pass++ == failing) return Status::IoError("unreadable");
                                 return visit(graph.src, graph.dst);
                               });
    for (; failing < 10; ++failing) {
      pass = 0;
      const auto parts = PartitionEdges(input, options, control);
      if (pass <= failing) break;  // every pass has failed once
      EXPECT_STATUS(parts, kIoError);
    }
    EXPECT_GE(failing, 1);
    EXPECT_LT(failing, 10);
  }
}

TEST(PartitionerTest, AScanThatHasOtherEdgesThanItSaysIsRefused) {
  const TestGraph graph = PathGraph(100);
  const JobControl control;
  for (const std::uint64_t said : {98, 100}) {
    const PartitionInput input(
        100, said, [&](const PartitionInput::Visit& visit) { return visit(graph.src, graph.dst); });
    for (const PartitionerKind kind : kAllPartitioners) {
      PartitionOptions options{.kind = kind};
      options.partitions = 3;
      EXPECT_STATUS(PartitionEdges(input, options, control), kInvalidArgument);
    }
  }
  EXPECT_STATUS(MeasurePartition(graph.input(), std::vector<PartitionId>(98), 1), kInvalidArgument);
  EXPECT_STATUS(ChooseOwners(graph.input(), std::vector<PartitionId>(98), 1), kInvalidArgument);
}

TEST(PartitionerTest, CancellingInterrupts) {
  const TestGraph graph = Rmat(12, 40000, 1);
  PartitionOptions options;
  options.partitions = 4;
  JobControl* running = nullptr;
  std::set<std::string> phases;
  JobControl control([&](const JobControl::Progress& progress) {
    phases.insert(std::string(progress.phase));
    running->Cancel();
  });
  running = &control;
  EXPECT_STATUS(PartitionEdges(graph.input(), options, control), kInterrupted);
  EXPECT_EQ(phases.size(), 1);
}

TEST(ChooseOwnersTest, OwnersHoldEdgesAndRowsAreBalanced) {
  const std::uint64_t seed = testing::TestSeed();
  for (const TestGraph& graph : LargerGraphs(seed)) {
    PartitionOptions options;
    options.partitions = 6;
    const std::vector<PartitionId> parts = Partition(graph, options);
    const std::vector<PartitionId> owners = Owners(graph, parts, 6);
    ASSERT_EQ(owners.size(), graph.vertex_count);
    std::vector<std::set<PartitionId>> replicas(graph.vertex_count);
    std::vector<double> interior(6);
    for (std::size_t e = 0; e < parts.size(); ++e) {
      replicas[static_cast<std::size_t>(graph.src[e])].insert(parts[e]);
      replicas[static_cast<std::size_t>(graph.dst[e])].insert(parts[e]);
    }
    std::vector<double> rows(6);
    for (std::size_t v = 0; v < owners.size(); ++v) {
      ASSERT_LT(owners[v], 6);
      rows[owners[v]] += 1;
      EXPECT_TRUE(replicas[v].empty() || replicas[v].contains(owners[v]));
      if (replicas[v].size() == 1) interior[owners[v]] += 1;
    }
    // No choice of owners can assign a partition less than its interior vertices.
    const double mean = static_cast<double>(owners.size()) / 6;
    const double forced = *std::max_element(interior.begin(), interior.end());
    EXPECT_LE(*std::max_element(rows.begin(), rows.end()), std::max(forced, 1.1 * mean))
        << graph.name;
    EXPECT_EQ(Owners(graph, parts, 6), owners);
  }
}

TEST(ChooseOwnersTest, TheMajorityDecidesAndIsolatedVerticesFillUp) {
  // Vertex 0 has three edges in partition 1 and one in partition 0; 5 to 9 have none.
  const std::vector<VertexId> src = {0, 0, 0, 0};
  const std::vector<VertexId> dst = {1, 2, 3, 4};
  const std::vector<PartitionId> parts = {1, 1, 1, 0};
  const std::vector<PartitionId> owners =
      Owners({.name = "majority", .vertex_count = 10, .src = src, .dst = dst}, parts, 3);
  EXPECT_EQ(std::vector<PartitionId>(owners.begin(), owners.begin() + 5),
            (std::vector<PartitionId>{1, 1, 1, 1, 0}));
  EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), 4);
  EXPECT_EQ(std::count(owners.begin(), owners.end(), 0), 3);
  EXPECT_EQ(std::count(owners.begin(), owners.end(), 2), 3);
}

TEST(OwnerBalanceTest, IsMostOverMeanOfPartitionsThatAreThere) {
  const std::vector<PartitionId> owners = {0, 1, 1, 2};
  EXPECT_DOUBLE_EQ(OwnerBalance(owners, 3).value(), 1.5);
  EXPECT_DOUBLE_EQ(OwnerBalance({}, 3).value(), 1);
  for (const std::uint32_t partitions : {0U, 2U}) {
    const auto balance = OwnerBalance(owners, partitions);
    ASSERT_FALSE(balance);
    EXPECT_EQ(balance.error().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace rhizome
