#include "cache/layout/pass_lists.h"

#include <map>
#include <random>
#include <set>

#include "index/generation/graph_builder.h"
#include "testing/test_store.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::OpenGraph;

/// Returns random edges in 3 partitions, with parallel edges and self-loops.
GraphInput RandomInput(std::mt19937_64& random, std::uint64_t vertices, std::uint64_t edges) {
  GraphInput input;
  input.vertex_count = vertices;
  input.vertex_type_names = {"node"};
  input.edge_type_names = {"edge"};
  for (std::uint64_t e = 0; e < edges; ++e) {
    input.edges.src.push_back(static_cast<VertexId>(random() % vertices));
    input.edges.dst.push_back(static_cast<VertexId>(random() % (1 + random() % vertices)));
  }
  return input;
}

class PassListsTest : public ::testing::Test {
 protected:
  void Make(bool undirected) {
    GraphInput input = RandomInput(random_, 300, 1500);
    input.undirected = undirected;
    const Path path = folder_ / (undirected ? "undirected.rz" : "directed.rz");
    BuildOptions options;
    options.partition.partitions = 3;
    ASSERT_OK(testing::BuildStore(path, std::move(input), options));
    auto opened = testing::OpenStoreGraph(path);
    ASSERT_OK(opened);
    opened_ = *std::move(opened);
  }
  const GraphSnapshot& graph() const { return *opened_.graph; }

  std::mt19937_64 random_{testing::TestSeed()};
  testing::TempDir folder_;
  OpenGraph opened_;
};

TEST_F(PassListsTest, WithAllNeighborsListsAreTheGraphs) {
  for (const bool undirected : {false, true}) {
    SCOPED_TRACE(undirected);
    Make(undirected);
    std::size_t targets_seen = 0;
    for (PartitionId p = 0; p < graph().partition_count(); ++p) {
      const std::vector<Row> targets = TargetsOf(graph(), p);
      targets_seen += targets.size();
      const auto lists = DrawPassLists(graph(), targets, {}, JobControl());
      ASSERT_OK(lists);
      ASSERT_EQ(lists->targets.size(), targets.size());
      std::set<Row> used(targets.begin(), targets.end());
      for (std::size_t t = 0; t < targets.size(); ++t) {
        EXPECT_EQ(lists->rows[lists->targets[t]], targets[t]);
        std::multiset<Row> read;
        for (const LocalRow row : lists->ReadsOf(t)) read.insert(lists->rows[row]);
        std::multiset<Row> expected;
        const auto neighbors = graph().Neighbors(*graph().VertexAt(targets[t]), Direction::kIn);
        ASSERT_OK(neighbors);
        for (const Neighbor& n : *neighbors) expected.insert(*graph().RowOf(n.vertex));
        EXPECT_EQ(read, expected);
        used.insert(expected.begin(), expected.end());
      }
      EXPECT_EQ(lists->rows, std::vector<Row>(used.begin(), used.end()));
      for (std::size_t i = 0; i < lists->rows.size(); ++i) {
        EXPECT_EQ(lists->vertices[i], *graph().VertexAt(lists->rows[i]));
        EXPECT_EQ(lists->degrees[i], *graph().Degree(lists->vertices[i], Direction::kOut));
      }
    }
    EXPECT_EQ(targets_seen, graph().vertex_count());
  }
}

TEST_F(PassListsTest, DrawnNeighborsDependOnSeedAndLayerAndNotOnWhoElseIsComputed) {
  Make(/*undirected=*/true);
  const PassDrawOptions options{.fanout = 2, .seed = 7, .layer = 1};
  std::vector<Row> all;
  for (Row row = 0; row < static_cast<Row>(graph().vertex_count()); ++row) all.push_back(row);
  const auto reads = [&](const std::vector<Row>& targets, const PassDrawOptions& draw) {
    const auto lists = DrawPassLists(graph(), targets, draw, JobControl());
    EXPECT_OK(lists);
    std::map<Row, std::multiset<Row>> found;
    for (std::size_t t = 0; t < targets.size(); ++t) {
      for (const LocalRow row : lists->ReadsOf(t)) found[targets[t]].insert(lists->rows[row]);
    }
    return found;
  };
  const auto whole = reads(all, options);
  std::map<Row, std::multiset<Row>> parts;
  for (PartitionId p = 0; p < graph().partition_count(); ++p) {
    parts.merge(reads(TargetsOf(graph(), p), options));
  }
  EXPECT_EQ(parts, whole);
  for (const auto& [row, read] : whole) EXPECT_LE(read.size(), 2u);
  PassDrawOptions other = options;
  other.layer = 0;
  EXPECT_NE(reads(all, other), whole);
  other = options;
  other.seed = 8;
  EXPECT_NE(reads(all, other), whole);
}

TEST_F(PassListsTest, StopsWhenItIsCancelled) {
  Make(/*undirected=*/false);
  JobControl control;
  control.Cancel();
  const auto lists = DrawPassLists(graph(), TargetsOf(graph(), 0), {}, control);
  ASSERT_FALSE(lists);
  EXPECT_EQ(lists.error().code(), StatusCode::kInterrupted);
}

}  // namespace
}  // namespace rhizome
