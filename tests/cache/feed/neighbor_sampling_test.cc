#include "rhizome/neighbor_sampling.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "cache/blocks/block_plan.h"
#include "cache/feed/minibatch_sampler.h"
#include "cache/feed/resolve_sampling.h"
#include "cache/feed/row_degrees.h"
#include "cache/feed/superbatch.h"
#include "index/base/edge_list.h"
#include "index/generation/graph_builder.h"
#include "rhizome/ingest.h"
#include "testing/test_store.h"

// Tests of NeighborSampling, the options of sampling by name (directions, weights, types,
// meta-paths, times): they are translated into sampler options, carried by minibatches, used by
// layer passes, and refused if they cannot be met.

namespace rhizome {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSampledVertices = 400;
constexpr std::uint64_t kSampledGraphEdges = 6000;

/// Returns a directed graph in three partitions, with three edge types, weights, times, parallel
/// edges, self-loops and a few hubs. Every vertex has a time.
GraphInput RichSampledInput(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  GraphInput input;
  input.vertex_count = kSampledVertices;
  input.vertex_type_names = {"v"};
  input.edge_type_names = {"cites", "likes", "writes"};
  input.weighted = true;
  input.edges.attributes = {EdgeAttribute("time")};
  const auto draw = [&] {
    return static_cast<VertexId>(random() % (random() % 3 == 0 ? 6 : kSampledVertices - 20));
  };
  for (std::uint64_t e = 0; e < kSampledGraphEdges; ++e) {
    input.edges.src.push_back(draw());
    input.edges.dst.push_back(draw());
    input.edges.type.push_back(static_cast<TypeId>(random() % 3));
    input.edges.weight.push_back(static_cast<float>(random() % 64) / 8);
    input.edges.attributes[0].Add(static_cast<std::int64_t>(random() % 50));
  }
  std::vector<std::int64_t> times;
  for (std::uint64_t v = 0; v < kSampledVertices; ++v)
    times.push_back(static_cast<std::int64_t>(random() % 60));
  input.arrays.push_back(testing::MakeArray("born", 1, DataType::kInt64, times));
  input.arrays.push_back(
      testing::MakeArray("feat", 2, DataType::kFloat32, std::vector<float>(2 * kSampledVertices)));
  return input;
}

class NeighborSamplingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new testing::TempDir;
    seed_ = testing::TestSeed();
    Build("rich.rz", RichSampledInput(seed_), Direction::kBoth);
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override { Open("rich.rz"); }

  static void Build(const std::string& name, GraphInput input, Direction directions) {
    BuildOptions build;
    build.partition = {.kind = PartitionerKind::kRandom, .partitions = 3};
    build.directions = directions;
    ASSERT_OK(testing::BuildStore(*folder_ / name, std::move(input), build));
  }

  void Open(const std::string& name) {
    auto open = testing::OpenStoreGraph(*folder_ / name);
    ASSERT_OK(open);
    open_ = *std::move(open);
  }

  const GraphSnapshot& graph() const { return *open_.graph; }

  std::string Refused(const NeighborSampling& sampling, std::optional<bool> edge_weights = {},
                      std::vector<std::int64_t> fanouts = {3, 3}) {
    const auto resolved = ResolveSampling(sampling, edge_weights, std::move(fanouts), graph());
    return resolved ? "" : resolved.error().message();
  }

  static testing::TempDir* folder_;
  static std::uint64_t seed_;
  testing::OpenGraph open_;
};
testing::TempDir* NeighborSamplingTest::folder_ = nullptr;
std::uint64_t NeighborSamplingTest::seed_ = 0;

/// Returns every way of sampling, by name.
std::map<std::string, NeighborSampling> AllWaysOfSampling() {
  return {
      {"plain", {}},
      {"both", {.direction = Direction::kBoth}},
      {"weighted", {.direction = Direction::kBoth, .weighted = true}},
      {"typed", {.typed_fanouts = {{"likes", {2, 1}}, {"default", {1, kAllNeighbors}}}}},
      {"typed both", {.direction = Direction::kBoth, .typed_fanouts = {{"writes", {3, 2}}}}},
      {"path", {.direction = Direction::kOut, .meta_path = {"likes", "cites"}}},
      {"times", {.direction = Direction::kBoth, .time_attribute = "time", .seed_times = "born"}}};
}

/// Returns the equivalent options of a plain Sampler, which uses numbers instead of names.
SamplerOptions DirectSamplerOptions(const std::string& way, const NeighborSampling& sampling,
                                    const GraphSnapshot& graph) {
  SamplerOptions options{.direction = sampling.walked(), .weighted = sampling.weighted};
  if (way == "typed") {
    options.typed_fanouts = {{1, 2, 1}, {kAllNeighbors, 1, kAllNeighbors}};
  } else if (way == "typed both") {
    options.typed_fanouts = {{0, 0, 3}, {0, 0, 2}};
  } else {
    options.fanouts = {3, 2};
  }
  if (way == "path") options.meta_path = {1, 0};
  if (way == "times") {
    options.times = *LoadEdgeTimes(graph, "time");
    options.disjoint = true;
  }
  return options;
}

TEST_F(NeighborSamplingTest, MinibatchesAreWhatTheSamplerDrawsAndComeBackFromScratch) {
  std::vector<std::int64_t> born(kSampledVertices);
  const auto array = open_.store->OpenArray("born");
  ASSERT_OK(array);
  ASSERT_OK((*array)->ReadRows(0, kSampledVertices, std::as_writable_bytes(std::span(born))));
  const std::vector<VertexId> seeds = {5, 399, 0, 17, 200, 1};
  for (const auto& [way, sampling] : AllWaysOfSampling()) {
    SCOPED_TRACE(way);
    auto resolved = ResolveSampling(sampling, {}, {3, 2}, graph());
    ASSERT_OK(resolved);
    EXPECT_TRUE(resolved->edge_weights);
    resolved->sampler.seed = seed_;
    resolved->edge_types = true;
    resolved->degrees = true;
    resolved->weighted_degrees = true;
    const auto feed = MinibatchSampler::Create(graph(), *resolved, nullptr);
    ASSERT_OK(feed);
    SamplerOptions direct = DirectSamplerOptions(way, sampling, graph());
    direct.seed = seed_;
    const auto sampler = Sampler::Create(graph(), direct);
    ASSERT_OK(sampler);
    std::vector<std::int64_t> times;
    for (const VertexId seed : seeds) {
      if (way == "times") times.push_back(born[static_cast<std::size_t>(*graph().RowOf(seed))]);
    }
    const auto m = feed->Sample({.tag = 3, .key = 9, .vertices = seeds});
    ASSERT_OK(m);
    const auto drawn = (*sampler)->Sample(seeds, times, 9);
    ASSERT_OK(drawn);
    EXPECT_EQ(m->rows, drawn->rows);
    EXPECT_EQ(m->hop_offsets, drawn->hop_offsets);
    EXPECT_TRUE(std::ranges::equal(m->offsets, drawn->offsets));
    EXPECT_TRUE(std::ranges::equal(m->neighbors, drawn->neighbors));
    EXPECT_EQ(m->types, drawn->types);
    EXPECT_EQ(m->weights, drawn->weights);
    EXPECT_EQ(m->seed_of, drawn->seed_of);
    EXPECT_GT(m->neighbors.size(), 0U);
    ASSERT_EQ(m->weighted_degrees.size(), m->rows.size());
    for (std::size_t v = 0; v < m->rows.size(); ++v) {
      const auto list = graph().Neighbors(*graph().VertexAt(m->rows[v]), sampling.walked());
      ASSERT_OK(list);
      double sum = 0;
      for (const Neighbor& neighbor : *list) sum += static_cast<double>(neighbor.weight);
      EXPECT_EQ(m->degrees[v], list->size());
      // multiples of 1/8, so sums are exact
      EXPECT_EQ(m->weighted_degrees[v], static_cast<float>(sum));
    }
    const auto again = DecodeMinibatch(EncodeMinibatch(*m));
    ASSERT_OK(again);
    EXPECT_EQ(again->types, m->types);
    EXPECT_EQ(again->weights, m->weights);
    EXPECT_EQ(again->degrees, m->degrees);
    EXPECT_EQ(again->weighted_degrees, m->weighted_degrees);
    EXPECT_EQ(again->neighbors, m->neighbors);
  }
}

TEST_F(NeighborSamplingTest, FactsThatAreNotAskedForAreNotCarried) {
  auto resolved = ResolveSampling({}, false, {3, 2}, graph());
  ASSERT_OK(resolved);
  const auto feed = MinibatchSampler::Create(graph(), *resolved, nullptr);
  ASSERT_OK(feed);
  const auto m = feed->Sample({.tag = 0, .key = 0, .vertices = {1, 2, 3}});
  ASSERT_OK(m);
  EXPECT_TRUE(m->types.empty());
  EXPECT_TRUE(m->weights.empty());
  EXPECT_TRUE(m->weighted_degrees.empty());
}

/// The edges of a target as (row of the neighbour, weight), ascending.
using RowsWithWeights = std::vector<std::pair<Row, float>>;

TEST_F(NeighborSamplingTest, WeightsStayWithTheirEdgesInEveryWindowAndBlock) {
  for (const Direction direction : {Direction::kIn, Direction::kOut, Direction::kBoth}) {
    const auto degrees = DegreesOfRows(graph(), direction);
    ASSERT_OK(degrees);
    std::vector<RowsWithWeights> lists;
    for (std::uint64_t row = 0; row < kSampledVertices; ++row) {
      const auto neighbors = graph().Neighbors(*graph().VertexAt(static_cast<Row>(row)), direction);
      ASSERT_OK(neighbors);
      RowsWithWeights& list = lists.emplace_back();
      for (const Neighbor& n : *neighbors) list.emplace_back(*graph().RowOf(n.vertex), n.weight);
      std::sort(list.begin(), list.end());
    }
    for (const std::uint64_t stage_rows : {1, 7, 1000}) {
      for (const Row size : {128, 400}) {
        auto planner = BlockPlanner::Create(
            graph(), {.draw = {.threads = 2, .direction = direction, .weights = true},
                      .source_chunk_rows = 64,
                      .stage_rows = stage_rows,
                      .degrees = *degrees});
        ASSERT_OK(planner);
        for (Row begin = 0; begin < static_cast<Row>(kSampledVertices); begin += size) {
          const Row end = std::min(begin + size, static_cast<Row>(kSampledVertices));
          const auto planned = planner->Plan({.begin = begin, .end = end});
          ASSERT_OK(planned);
          ASSERT_EQ(planned->weights.size(), planned->neighbors.size());
          for (std::size_t t = 0; t < planned->targets.size(); ++t) {
            RowsWithWeights listed;
            for (std::uint32_t e = planned->offsets[t]; e < planned->offsets[t + 1]; ++e) {
              listed.emplace_back(planned->rows[planned->neighbors[e]], planned->weights[e]);
            }
            ASSERT_EQ(listed, lists[static_cast<std::size_t>(planned->targets[t])]);
          }
        }
      }
    }
  }
}

TEST_F(NeighborSamplingTest, PassesTakeTheEdgesThatTheirHopWalks) {
  const auto degrees = DegreesOfRows(graph(), Direction::kBoth);
  ASSERT_OK(degrees);
  std::vector<Row> targets;
  for (std::uint64_t row = 0; row < kSampledVertices; ++row)
    targets.push_back(static_cast<Row>(row));
  auto resolved = ResolveSampling(
      {.direction = Direction::kBoth, .typed_fanouts = {{"likes", {kAllNeighbors, 2}}}}, {}, {},
      graph());
  ASSERT_OK(resolved);
  ASSERT_OK(CheckLayerwise(*resolved));
  for (const std::size_t hop : {0, 1}) {
    PassDrawOptions draw{.seed = seed_, .layer = 1};
    SetPassDraw(*resolved, hop, draw);
    const auto lists = DrawPassLists(graph(), targets, draw, JobControl());
    ASSERT_OK(lists);
    ASSERT_EQ(lists->weights.size(), lists->neighbors.size());
    std::uint64_t edges = 0;
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const auto all = graph().Neighbors(*graph().VertexAt(targets[t]), Direction::kBoth);
      ASSERT_OK(all);
      std::multiset<std::pair<Row, float>> of_type;
      for (const Neighbor& n : *all)
        if (n.type == 1) of_type.emplace(*graph().RowOf(n.vertex), n.weight);
      const std::size_t count = lists->offsets[t + 1] - lists->offsets[t];
      EXPECT_EQ(count, hop == 0 ? of_type.size() : std::min<std::size_t>(of_type.size(), 2));
      EXPECT_LE(count, MostEdgesOf(draw, (*degrees)[t]));
      for (std::uint64_t e = lists->offsets[t]; e < lists->offsets[t + 1]; ++e) {
        const auto found = of_type.find({lists->rows[lists->neighbors[e]], lists->weights[e]});
        ASSERT_NE(found, of_type.end());
        of_type.erase(found);
      }
      edges += count;
    }
    EXPECT_LE(edges, MostEdgesOf(draw, graph()));
  }
}

TEST_F(NeighborSamplingTest, OnlyPassesOfAllNeighborsTakeTheSameLists) {
  const PassDrawOptions all;
  PassDrawOptions other = all;
  other.layer = 1;
  EXPECT_TRUE(TakeSameLists(all, other));
  other.direction = Direction::kBoth;
  EXPECT_FALSE(TakeSameLists(all, other));
  other = all;
  other.typed_fanout = {kAllNeighbors, 0, 0};
  EXPECT_FALSE(TakeSameLists(all, other));
  EXPECT_TRUE(TakeSameLists(other, other));
  other.typed_fanout = {kAllNeighbors, 3, 0};
  EXPECT_FALSE(TakeSameLists(other, other));
  EXPECT_FALSE(TakeSameLists({.fanout = 4}, {.fanout = 4}));
}

TEST_F(NeighborSamplingTest, WeightedDegreesAreSumsOverTheLists) {
  for (const Direction direction : {Direction::kIn, Direction::kOut, Direction::kBoth}) {
    const auto sums = WeightedDegrees(graph(), direction);
    ASSERT_OK(sums);
    ASSERT_EQ(sums->size(), kSampledVertices);
    for (std::size_t row = 0; row < kSampledVertices; ++row) {
      const auto list = graph().Neighbors(*graph().VertexAt(static_cast<Row>(row)), direction);
      ASSERT_OK(list);
      double sum = 0;
      for (const Neighbor& n : *list) sum += static_cast<double>(n.weight);
      ASSERT_EQ((*sums)[row], static_cast<float>(sum));
    }
  }
}

TEST_F(NeighborSamplingTest, WeightsThatLayersCannotMultiplyWithAreRefused) {
  for (const float bad : {-0.5F, INFINITY}) {
    GraphInput input = RichSampledInput(seed_);
    input.edges.weight[kSampledGraphEdges / 2] = bad;
    const std::string name = std::to_string(bad) + ".rz";
    Build(name, std::move(input), Direction::kBoth);
    Open(name);
    EXPECT_THAT(Refused({}), HasSubstr("`edge_weights=false`"));
    EXPECT_STATUS(WeightedDegrees(graph(), Direction::kIn), kInvalidArgument);
    EXPECT_EQ(Refused({}, false), "");
  }
}

TEST_F(NeighborSamplingTest, WhatCannotBeDrawnIsRefusedWithAWayOut) {
  EXPECT_THAT(Refused({.typed_fanouts = {{"loves", {1, 1}}}}), HasSubstr("cites, likes, writes"));
  EXPECT_THAT(Refused({.meta_path = {"likes", "loves"}}), HasSubstr("no edge type 'loves'"));
  EXPECT_THAT(Refused({.typed_fanouts = {{"likes", {1, 1}}, {"likes", {2, 2}}}}),
              HasSubstr("twice"));
  EXPECT_THAT(Refused({.typed_fanouts = {{"default", {1, 1}}, {"default", {2, 2}}}}),
              HasSubstr("twice"));
  EXPECT_THAT(Refused({.typed_fanouts = {{"likes", {1, 1}}, {"cites", {2}}}}),
              HasSubstr("2 hops for 'likes' but 1 for 'cites'"));
  EXPECT_THAT(Refused({.meta_path = {"likes"}}), HasSubstr("one type for each hop"));
  EXPECT_THAT(Refused({.typed_fanouts = {{"likes", {1, 1}}}, .meta_path = {"likes", "likes"}}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(Refused({.time_attribute = "time"}), HasSubstr("`seed_times`"));
  EXPECT_THAT(Refused({.seed_times = "born"}), HasSubstr("`time_attribute`"));
  EXPECT_THAT(Refused({.time_attribute = "time", .seed_times = "feat"}), HasSubstr("feat"));
  EXPECT_THAT(Refused({.time_attribute = "hour", .seed_times = "born"}), HasSubstr("hour"));
  const auto path = ResolveSampling({.meta_path = {"likes", "cites"}}, {}, {3, 3}, graph());
  ASSERT_OK(path);
  EXPECT_THAT(CheckLayerwise(*path).message(), HasSubstr("`mode=samplewise`"));
  const auto times =
      ResolveSampling({.time_attribute = "time", .seed_times = "born"}, {}, {3, 3}, graph());
  ASSERT_OK(times);
  EXPECT_THAT(CheckLayerwise(*times).message(), HasSubstr("`mode=samplewise`"));
  const auto same = ResolveSampling({.meta_path = {"likes", "likes"}}, {}, {3, 2}, graph());
  ASSERT_OK(same);
  EXPECT_OK(CheckLayerwise(*same));
}

TEST_F(NeighborSamplingTest, AStoreThatLacksADirectionOrWeightsSaysHowToMakeIt) {
  GraphInput input = RichSampledInput(seed_);
  input.weighted = false;
  input.edges.weight.clear();
  Build("in.rz", std::move(input), Direction::kIn);
  Open("in.rz");
  EXPECT_EQ(Refused({}), "");
  EXPECT_THAT(Refused({.direction = Direction::kBoth}), HasSubstr("`directions=both`"));
  EXPECT_THAT(Refused({.direction = Direction::kBoth}), HasSubstr("`undirected`"));
  EXPECT_THAT(Refused({.direction = Direction::kOut}), HasSubstr("`directions=out`"));
  EXPECT_THAT(Refused({}, true), HasSubstr("weight column"));
  EXPECT_STATUS(WeightedDegrees(graph(), Direction::kIn), kInvalidArgument);
  const auto resolved = ResolveSampling({}, {}, {3, 3}, graph());
  ASSERT_OK(resolved);
  EXPECT_FALSE(resolved->edge_weights);
}

TEST_F(NeighborSamplingTest, ASymmetricStoreHasOneListForBothDirections) {
  GraphInput input = RichSampledInput(seed_);
  input.undirected = true;
  Build("mutual.rz", std::move(input), Direction::kBoth);
  Open("mutual.rz");
  const auto in = DegreesOfRows(graph(), Direction::kIn);
  const auto both = DegreesOfRows(graph(), Direction::kBoth);
  ASSERT_OK(in);
  ASSERT_OK(both);
  EXPECT_EQ(*in, *both);
  EXPECT_EQ(*WeightedDegrees(graph(), Direction::kIn), *WeightedDegrees(graph(), Direction::kBoth));
}

TEST(DescribeSamplingTest, EveryChoiceIsSaidAndPlainDrawsAreNot) {
  EXPECT_EQ(DescribeSampling({}), "");
  std::set<std::string> texts;
  for (const auto& [way, sampling] : AllWaysOfSampling()) texts.insert(DescribeSampling(sampling));
  EXPECT_EQ(texts.size(), AllWaysOfSampling().size());
  EXPECT_EQ(DescribeSampling({.typed_fanouts = {{"a", {1}}, {"b", {2}}}}),
            DescribeSampling({.typed_fanouts = {{"b", {2}}, {"a", {1}}}}));
}

}  // namespace
}  // namespace rhizome
