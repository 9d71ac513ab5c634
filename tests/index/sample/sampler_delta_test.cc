#include <cstring>
#include <functional>

#include "index/base/edge_list.h"
#include "index/delta/delta_view.h"
#include "index/generation/graph_builder.h"
#include "index/sampler_graphs.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"
#include "testing/update_history.h"

// Tests of Sampler on a graph with a delta. Samples after random histories are compared with the
// lists of Graph, and the distribution of draws with an enumeration over the edge list.

namespace rhizome {
namespace {

using testing::Contained;
using testing::DrawnFor;
using testing::ExpectLaw;
using testing::Fanouts;
using testing::MakeSampler;
using testing::RandomBase;
using testing::Same;
using testing::Sort;
using testing::UpdateModel;

/// A store that is open for writing, and its live graph.
struct LiveGraph {
  testing::TempDir folder;
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;

  void Open(GraphInput input, const BuildOptions& options) {
    ASSERT_OK(testing::BuildStore(folder / "g.rz", std::move(input), options));
    auto opened = testing::OpenStore(folder / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(opened);
    store = *std::move(opened);
    auto live = Graph::Open(*store);
    ASSERT_OK(live);
    graph = *std::move(live);
  }
};

std::vector<Direction> KeptBy(const GraphSnapshot& graph) {
  if (graph.info().symmetric || graph.info().directions == Direction::kBoth)
    return {Direction::kOut, Direction::kIn, Direction::kBoth};
  return {graph.info().directions};
}

std::vector<Neighbor> ListOf(const GraphSnapshot& graph, VertexId vertex, Direction direction) {
  const auto list = graph.Neighbors(vertex, direction);
  EXPECT_OK(list);
  return list ? *list : std::vector<Neighbor>();
}

// Samples one hop from every vertex, including deleted ones.
std::optional<SampledSubgraph> SampleAll(const GraphSnapshot& graph,
                                         const SamplerOptions& options) {
  const auto sampler = MakeSampler(graph, options);
  if (sampler == nullptr) return {};
  auto sample = sampler->Sample(testing::AllVertices(graph), 5);
  EXPECT_OK(sample);
  if (!sample) return {};
  return *std::move(sample);
}

// Compares full neighbourhoods, and samples of them, with the lists that Graph merges with other
// code.
void ExpectSamplesTheGraph(const GraphSnapshot& graph, std::uint64_t seed) {
  for (const Direction direction : KeptBy(graph)) {
    SamplerOptions options = Fanouts({kAllNeighbors});
    options.direction = direction;
    options.seed = seed;
    options.disjoint = seed % 2 == 0;
    const auto whole = SampleAll(graph, options);
    options.fanouts = {2};
    const auto some = SampleAll(graph, options);
    options.threads = 3;
    const auto parallel = SampleAll(graph, options);
    ASSERT_TRUE(whole && some && parallel);
    EXPECT_TRUE(Same(*some, *parallel));
    for (std::uint64_t v = 0; v < graph.vertex_count(); ++v) {
      SCOPED_TRACE(v);
      const auto vertex = static_cast<VertexId>(v);
      ASSERT_EQ(*graph.VertexAt(whole->rows[v]), vertex);
      auto expected = ListOf(graph, vertex, direction);
      auto drawn = DrawnFor(graph, *whole, v);
      auto drawn_some = DrawnFor(graph, *some, v);
      EXPECT_EQ(drawn_some.size(), std::min<std::size_t>(expected.size(), 2));
      EXPECT_TRUE(Contained(drawn_some, expected));
      Sort(drawn);
      EXPECT_EQ(drawn, expected);
    }
  }
}

// Samples each edge type separately, by a meta-path and by fanouts for each type.
void ExpectSamplesTypes(const GraphSnapshot& graph, std::uint64_t seed) {
  const std::size_t types = graph.edge_types().size();
  for (const Direction direction : KeptBy(graph)) {
    for (std::size_t t = 0; t < types; ++t) {
      SCOPED_TRACE(graph.edge_types()[t]);
      const auto type = static_cast<TypeId>(t);
      SamplerOptions path = Fanouts({kAllNeighbors});
      path.meta_path = {type};
      path.direction = direction;
      SamplerOptions typed;
      typed.typed_fanouts = {std::vector<std::int64_t>(types, 0)};
      typed.typed_fanouts[0][t] = 1;
      typed.direction = direction;
      typed.seed = seed;
      const auto whole = SampleAll(graph, path);
      const auto one = SampleAll(graph, typed);
      ASSERT_TRUE(whole && one);
      for (std::uint64_t v = 0; v < graph.vertex_count(); ++v) {
        auto expected = ListOf(graph, static_cast<VertexId>(v), direction);
        std::erase_if(expected, [&](const Neighbor& n) { return n.type != type; });
        auto drawn = DrawnFor(graph, *whole, v);
        auto drawn_one = DrawnFor(graph, *one, v);
        EXPECT_EQ(drawn_one.size(), std::min<std::size_t>(expected.size(), 1));
        EXPECT_TRUE(Contained(drawn_one, expected));
        Sort(drawn);
        EXPECT_EQ(drawn, expected);
      }
    }
  }
}

// Expects that edge ids identify entries: no two draws of one list have the same id (except a loop,
// which is in both lists), and ids of the delta lead to its edges.
void ExpectEdgeIdsOfSamplerDelta(const GraphSnapshot& graph) {
  for (const Direction direction : KeptBy(graph)) {
    const Direction checked = direction == Direction::kBoth ? Direction::kIn : direction;
    bool kept = true;
    for (std::uint32_t p = 0; p < graph.partition_count(); ++p)
      kept = kept && graph.partition(p).has_edge_ids(checked);
    if (!kept) continue;
    SamplerOptions options = Fanouts({kAllNeighbors});
    options.direction = direction;
    options.edge_ids = true;
    const auto sample = SampleAll(graph, options);
    ASSERT_TRUE(sample);
    const auto view = graph.delta_view();
    ASSERT_OK(view);
    for (std::uint64_t v = 0; v < graph.vertex_count(); ++v) {
      std::vector<std::pair<PartitionId, std::uint64_t>> seen;
      for (std::uint64_t e = sample->offsets[v]; e < sample->offsets[v + 1]; ++e) {
        const EdgeId edge = sample->edges[e];
        const bool loop = static_cast<std::uint64_t>(sample->neighbors[e]) == v;
        if (!loop || direction != Direction::kBoth)
          seen.emplace_back(edge.partition, edge.position);
        if (edge.partition < graph.partition_count()) continue;
        ASSERT_NE(*view, nullptr);
        const auto place = (*view)->PlaceOf(edge.position);
        ASSERT_TRUE(place);
        // The entry at this place is in the list of one endpoint, and refers to the other.
        const Row named = (*view)->rows((*view)->place_direction())[*place];
        const Row row = sample->rows[static_cast<std::size_t>(sample->neighbors[e])];
        EXPECT_TRUE(named == row || named == sample->rows[v]);
      }
      std::sort(seen.begin(), seen.end());
      EXPECT_TRUE(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    }
  }
}

TEST(SamplerDeltaTest, RandomHistoriesAreSampledAsTheGraphSaysThem) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    RandomBase base = testing::DrawBase(rng);
    UpdateModel model(base.input);
    const bool string_ids = base.string_ids();
    LiveGraph live;
    ASSERT_NO_FATAL_FAILURE(live.Open(std::move(base.input), base.options));
    for (int step = 0; step < 4; ++step) {
      SCOPED_TRACE(step);
      const WriteBatch batch = model.DrawBatch(rng, string_ids, 1 + rng() % 25);
      model.Apply(batch);
      ASSERT_OK(live.graph->Write(batch, {.sync = false, .create_types = true}));
      ExpectSamplesTheGraph(*live.graph->Snapshot(), rng());
      ExpectSamplesTypes(*live.graph->Snapshot(), rng());
      ExpectEdgeIdsOfSamplerDelta(*live.graph->Snapshot());
      if (::testing::Test::HasFailure()) return;
    }
  }
}

/// An entry of the edge list that draws are compared with: an in-edge of vertex 0.
struct Entry {
  std::int64_t source = 0;  // external id
  double weight = 1;
  std::int64_t time = 0;
};
using Outcome = std::vector<std::int64_t>;  // sources that were drawn, sorted

// Enumerates the distribution of successive draws in proportion to the weights, with or without
// replacement.
void Enumerate(const std::vector<Entry>& entries, std::vector<bool>& taken, int draws, bool replace,
               double p, const Outcome& drawn, std::map<Outcome, double>& law) {
  double sum = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) sum += taken[i] ? 0 : entries[i].weight;
  if (draws == 0 || sum == 0) {
    Outcome sorted = drawn;
    std::sort(sorted.begin(), sorted.end());
    law[sorted] += p;
    return;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (taken[i] || entries[i].weight == 0) continue;
    Outcome next = drawn;
    next.push_back(entries[i].source);
    if (!replace) taken[i] = true;
    Enumerate(entries, taken, draws - 1, replace, p * entries[i].weight / sum, next, law);
    taken[i] = false;
  }
}

std::map<Outcome, double> LawOf(std::vector<Entry> entries, const SamplerOptions& options,
                                std::int64_t now) {
  if (options.times != nullptr)
    std::erase_if(entries, [&](const Entry& entry) { return entry.time > now; });
  if (!options.weighted)
    for (Entry& entry : entries) entry.weight = 1;
  std::map<Outcome, double> law;
  std::vector<bool> taken(entries.size(), false);
  Enumerate(entries, taken, static_cast<int>(options.fanouts[0]), options.replace, 1, {}, law);
  return law;
}

/// A small graph whose vertex 0 has many in-edges, and updates of every kind to them.
class SamplerLawTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kTrials = 12000;

  void SetUp() override {
    GraphInput input = testing::EmptyInput(12);
    input.id_kind = ExternalIdKind::kInteger;
    input.edge_type_names = {"a", "b"};
    input.edges.attributes = {EdgeAttribute("time")};
    for (std::int64_t v = 0; v < 12; ++v) input.integer_ids.push_back(v);
    const auto add = [&](std::int64_t src, std::int64_t dst, TypeId type) {
      input.edges.src.push_back(src);
      input.edges.dst.push_back(dst);
      input.edges.type.push_back(type);
      input.edges.weight.push_back(static_cast<float>(WeightOf(src)));
      input.edges.attributes[0].Add(TimeOf(src));
    };
    for (std::int64_t v = 1; v < 12; ++v) {
      add(v, 0, static_cast<TypeId>(v % 2));
      add(v, v % 3 + 1, 0);  // edges of other vertices
    }
    add(5, 0, 1);  // parallel
    BuildOptions options = testing::RandomPartitions(3);
    ASSERT_NO_FATAL_FAILURE(live_.Open(std::move(input), options));
    ApplyUpdates();
  }

  static double WeightOf(std::int64_t src) { return static_cast<double>(src % 4) / 2; }
  static std::int64_t TimeOf(std::int64_t src) { return src * 7 % 10; }

  // After the updates vertex 0 still has in-edges from 1 2 5 5 6 8 10, and new ones from 1 (again),
  // 100 and 101.
  void ApplyUpdates() {
    const auto put = [](WriteBatch& batch, std::int64_t src, const char* type) {
      batch.PutEdge(
          ExternalId(src), ExternalId(std::int64_t{0}),
          {.type = type, .weight = static_cast<float>(WeightOf(src)), .attributes = {TimeOf(src)}});
    };
    WriteBatch first;
    first.DeleteEdge(ExternalId(std::int64_t{4}), ExternalId(std::int64_t{0}), "a");
    first.DeleteEdge(ExternalId(std::int64_t{7}), ExternalId(std::int64_t{0}), "b");
    first.DeleteVertex(ExternalId(std::int64_t{9}));
    put(first, 100, "a");
    put(first, 102, "b");
    put(first, 1, "b");
    ASSERT_OK(live_.graph->Write(first, {.sync = false}));
    WriteBatch second;
    second.DeleteVertex(ExternalId(std::int64_t{102}));
    second.DeleteEdge(ExternalId(std::int64_t{3}), ExternalId(std::int64_t{0}), "b");
    second.DeleteEdge(ExternalId(std::int64_t{11}), ExternalId(std::int64_t{0}), "b");
    put(second, 101, "b");
    ASSERT_OK(live_.graph->Write(second, {.sync = false}));
    for (const std::int64_t source : {1, 1, 2, 5, 5, 6, 8, 10, 100, 101})
      entries_.push_back({source, WeightOf(source), TimeOf(source)});
  }

  void ExpectLawOf(SamplerOptions options, std::int64_t now = 0) {
    const auto snapshot = live_.graph->Snapshot();
    const GraphSnapshot& graph = *snapshot;
    options.seed = seed_;
    const auto sampler = MakeSampler(graph, options);
    ASSERT_NE(sampler, nullptr);
    const auto zero = graph.Find(ExternalId(std::int64_t{0}));
    ASSERT_OK(zero);
    std::vector<std::int64_t> times;
    if (options.times != nullptr) times.push_back(now);
    std::map<Outcome, double> observed;
    for (std::uint64_t batch = 0; batch < kTrials; ++batch) {
      const auto sample = sampler->Sample(std::vector<VertexId>{*zero}, times, batch);
      ASSERT_OK(sample);
      Outcome outcome;
      for (const Neighbor& n : DrawnFor(graph, *sample, 0))
        outcome.push_back(std::get<std::int64_t>(*graph.ExternalIdOf(n.vertex)));
      std::sort(outcome.begin(), outcome.end());
      observed[outcome] += 1;
    }
    ExpectLaw(observed, LawOf(entries_, options, now), static_cast<double>(kTrials));
  }

  void ExpectAllLaws() {
    for (const bool weighted : {false, true}) {
      for (const bool replace : {false, true}) {
        SCOPED_TRACE(std::string(weighted ? "weighted" : "uniform") + (replace ? ", replace" : ""));
        SamplerOptions options = Fanouts({3});
        options.weighted = weighted;
        options.replace = replace;
        ExpectLawOf(options);
        auto times = LoadEdgeTimes(*live_.graph->Snapshot(), "time");
        ASSERT_OK(times);
        options.times = *times;
        options.disjoint = true;
        ExpectLawOf(options, 6);
      }
    }
  }

  const std::uint64_t seed_ = testing::TestSeed();
  LiveGraph live_;
  std::vector<Entry> entries_;
};

TEST_F(SamplerLawTest, DrawsOverADeltaFollowTheLawOfTheEdgeList) { ExpectAllLaws(); }

TEST_F(SamplerLawTest, ACompactedStoreDrawsByTheSameLaw) {
  const JobControl control;
  ASSERT_OK(live_.graph->Compact({}, control));
  ASSERT_TRUE(live_.graph->Snapshot()->delta()->empty());
  ExpectAllLaws();
}

TEST_F(SamplerLawTest, TheLatestEdgesAreThoseOfTheEdgeList) {
  auto times = LoadEdgeTimes(*live_.graph->Snapshot(), "time");
  ASSERT_OK(times);
  SamplerOptions options = Fanouts({3});
  options.times = *times;
  options.disjoint = true;
  options.temporal_pick = TemporalPick::kLast;
  options.edge_ids = true;
  const auto sampler = MakeSampler(*live_.graph->Snapshot(), options);
  ASSERT_NE(sampler, nullptr);
  const auto zero = live_.graph->Find(ExternalId(std::int64_t{0}));
  ASSERT_OK(zero);
  const EdgeNumbering numbers(*live_.graph->Snapshot());
  for (std::int64_t now = -1; now < 11; ++now) {
    const auto sample = sampler->Sample(std::vector<VertexId>{*zero}, std::vector{now}, 0);
    ASSERT_OK(sample);
    std::vector<std::int64_t> expected;
    for (const Entry& entry : entries_)
      if (entry.time <= now) expected.push_back(entry.time);
    std::sort(expected.rbegin(), expected.rend());
    expected.resize(std::min<std::size_t>(expected.size(), 3));
    std::vector<std::int64_t> drawn;
    for (const EdgeId edge : sample->edges) {
      std::int64_t time = 0;
      const std::int64_t number = numbers.Of(edge);
      ASSERT_OK(ReadEdgeRows(*live_.graph, "time", std::span(&number, 1),
                             std::as_writable_bytes(std::span(&time, 1))));
      drawn.push_back(time);
    }
    std::sort(drawn.rbegin(), drawn.rend());
    EXPECT_EQ(drawn, expected);
  }
}

TEST_F(SamplerLawTest, TimesAndWeightsMustFitTheDelta) {
  auto times = LoadEdgeTimes(*live_.graph->Snapshot(), "time");
  ASSERT_OK(times);
  WriteBatch batch;
  batch.PutEdge(ExternalId(std::int64_t{7}), ExternalId(std::int64_t{0}), {.weight = -1});
  ASSERT_OK(live_.graph->Write(batch, {.sync = false}));
  SamplerOptions options = Fanouts({3});
  options.weighted = true;
  EXPECT_STATUS(Sampler::Create(*live_.graph->Snapshot(), options), kInvalidArgument);
  options.weighted = false;
  options.disjoint = true;
  options.times = *times;
  EXPECT_STATUS(Sampler::Create(*live_.graph->Snapshot(), options), kInvalidArgument);
}

TEST_F(SamplerLawTest, ASamplerIsOfTheMomentItWasMade) {
  const auto snapshot = live_.graph->Snapshot();
  const GraphSnapshot& graph = *snapshot;
  const auto before = graph.Snapshot();
  const auto sampler = MakeSampler(graph, Fanouts({kAllNeighbors, kAllNeighbors}));
  ASSERT_NE(sampler, nullptr);
  const auto seeds = testing::AllVertices(graph);
  const auto first = sampler->Sample(seeds, 0);
  ASSERT_OK(first);
  WriteBatch batch;
  batch.PutEdge(ExternalId(std::int64_t{7}), ExternalId(std::int64_t{0}));
  batch.DeleteVertex(ExternalId(std::int64_t{5}));
  ASSERT_OK(live_.graph->Write(batch, {.sync = false}));
  const JobControl control;
  ASSERT_OK(live_.graph->Compact({}, control));
  const auto second = sampler->Sample(seeds, 0);
  ASSERT_OK(second);
  EXPECT_TRUE(Same(*first, *second));
  const auto again = MakeSampler(*before, Fanouts({kAllNeighbors, kAllNeighbors}));
  ASSERT_NE(again, nullptr);
  const auto third = again->Sample(seeds, 0);
  ASSERT_OK(third);
  EXPECT_TRUE(Same(*first, *third));
}

// A list with many holes: positions are found among its pieces by binary search, and weights extend
// over many pieces.
TEST(SamplerDeltaHubTest, AHubWithManyHolesFollowsTheLaw) {
  constexpr std::int64_t kDegree = 400;
  GraphInput input = testing::StarInput(kDegree);
  for (std::int64_t v = 1; v <= kDegree; ++v)
    input.edges.weight.push_back(static_cast<float>(v % 5));
  input.id_kind = ExternalIdKind::kInteger;
  for (std::int64_t v = 0; v <= kDegree; ++v) input.integer_ids.push_back(v);
  LiveGraph live;
  ASSERT_NO_FATAL_FAILURE(live.Open(std::move(input), testing::RandomPartitions(2)));
  WriteBatch batch;
  for (std::int64_t v = 3; v <= kDegree; v += 7)
    batch.DeleteEdge(ExternalId(v), ExternalId(std::int64_t{0}), "e");
  for (std::int64_t v = 1000; v < 1040; ++v)
    batch.PutEdge(ExternalId(v), ExternalId(std::int64_t{0}),
                  {.weight = static_cast<float>(v % 3)});
  ASSERT_OK(live.graph->Write(batch, {.sync = false}));
  const std::uint64_t seed = testing::TestSeed();
  std::map<std::int64_t, double> weights;
  for (std::int64_t v = 1; v <= kDegree; ++v)
    if (v % 7 != 3) weights[v] = static_cast<double>(v % 5);
  for (std::int64_t v = 1000; v < 1040; ++v) weights[v] = static_cast<double>(v % 3);

  for (const bool weighted : {false, true}) {
    for (const bool replace : {false, true}) {
      SamplerOptions options = Fanouts({replace ? 20 : 1});
      options.weighted = weighted;
      options.replace = replace;
      options.seed = seed;
      const auto sampler = MakeSampler(*live.graph->Snapshot(), options);
      ASSERT_NE(sampler, nullptr);
      std::map<std::int64_t, double> observed;
      double trials = 0;
      for (std::uint64_t b = 0; b < (replace ? 1000 : 8000); ++b) {
        const auto sample = sampler->Sample(std::vector<VertexId>{0}, b);
        ASSERT_OK(sample);
        for (const Neighbor& n : DrawnFor(*live.graph->Snapshot(), *sample, 0)) {
          observed[std::get<std::int64_t>(*live.graph->ExternalIdOf(n.vertex))] += 1;
          trials += 1;
        }
      }
      std::map<std::int64_t, double> law = weights;
      double sum = 0;
      for (auto& [id, p] : law) sum += p = weighted ? p : 1;
      for (auto& [id, p] : law) p /= sum;
      ExpectLaw(observed, law, trials);
    }
  }
}

}  // namespace
}  // namespace rhizome
