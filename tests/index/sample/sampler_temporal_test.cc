#include <algorithm>
#include <cstring>
#include <functional>

#include "index/base/edge_list.h"
#include "index/generation/graph_builder.h"
#include "index/sample/edge_times_in_memory.h"
#include "index/sampler_graphs.h"
#include "index/topology/adjacency.h"
#include "rhizome/sampler.h"
#include "storage/base/mix.h"

namespace rhizome {
namespace {

using testing::Build;
using testing::CountSets;
using testing::DrawnFor;
using testing::ExpectLaw;
using testing::Fanouts;
using testing::MakeSampler;
using testing::RandomInput;
using testing::RandomPartitions;
using testing::StarInput;

constexpr std::uint64_t kSamplerTemporalTrials = 12000;

using TimeOf = std::function<std::int64_t(VertexId src, VertexId dst)>;

// Returns the time stamps of all edges, by edge id, computed from the endpoints of each edge.
std::shared_ptr<const EdgeTimes> StampEdges(const GraphSnapshot& graph, const TimeOf& time_of) {
  std::vector<std::vector<std::int64_t>> times(graph.partition_count());
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    // Edges are numbered along the out-lists if the store has them.
    const bool by_out = partition.has(Direction::kOut);
    const Direction direction = by_out ? Direction::kOut : Direction::kIn;
    const auto id_of = [&](LocalId local) { return *graph.VertexAt(partition.RowOf(local)); };
    for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
      const VertexId vertex = id_of(static_cast<LocalId>(v));
      for (const LocalId other :
           partition.Neighbors(static_cast<LocalId>(v), direction).neighbors) {
        times[p].push_back(by_out ? time_of(vertex, id_of(other)) : time_of(id_of(other), vertex));
      }
    }
  }
  return std::make_shared<EdgeTimesInMemory>(std::move(times));
}

std::int64_t ScatteredTime(VertexId src, VertexId dst) {
  return static_cast<std::int64_t>(
             Mix64(static_cast<std::uint64_t>(src) * 1000 + static_cast<std::uint64_t>(dst)) % 40) -
         20;
}

SamplerOptions Temporal(std::vector<std::int64_t> fanouts, std::shared_ptr<const EdgeTimes> times,
                        std::uint64_t seed) {
  SamplerOptions options = Fanouts(std::move(fanouts));
  options.times = std::move(times);
  options.disjoint = true;
  options.seed = seed;
  return options;
}

// Compares every kind of temporal draw over a random graph with the lists of the graph.
TEST(TemporalSamplerTest, NoEdgeIsLaterThanTheSeed) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(300, 5000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  const GraphSnapshot& graph = *open->graph;
  const auto times = StampEdges(graph, ScatteredTime);
  const std::vector<VertexId> seeds = {1, 17, 1, 2, 200};
  const std::vector<std::int64_t> seed_times = {0, 19, -15, -21, 5};
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    for (const int kind : {0, 1, 2, 3, 4}) {
      SamplerOptions options = Temporal({6, 3}, times, seed);
      options.direction = direction;
      if (kind == 1) options.temporal_pick = TemporalPick::kLast;
      if (kind == 2) options.replace = true;
      if (kind == 3) options.weighted = true;
      if (kind == 4) options.meta_path = {1, 2};
      const auto sample = MakeSampler(graph, options)->Sample(seeds, seed_times, 0);
      ASSERT_OK(sample);
      for (std::size_t v = 0; v < sample->hop_offsets[2]; ++v) {
        const VertexId vertex = *graph.VertexAt(sample->rows[v]);
        const std::int64_t now = seed_times[sample->seed_of[v]];
        const std::size_t hop = v < sample->hop_offsets[1] ? 0 : 1;
        const auto time = [&](const Neighbor& n) {
          return direction == Direction::kIn ? ScatteredTime(n.vertex, vertex)
                                             : ScatteredTime(vertex, n.vertex);
        };
        auto eligible = graph.Neighbors(vertex, direction);
        ASSERT_OK(eligible);
        std::erase_if(*eligible, [&](const Neighbor& n) {
          return time(n) > now || (kind == 3 && n.weight == 0) ||
                 (kind == 4 && n.type != options.meta_path[hop]);
        });
        auto drawn = DrawnFor(graph, *sample, v);
        for (const Neighbor& n : drawn) EXPECT_LE(time(n), now);
        const auto wanted = static_cast<std::size_t>(options.fanouts[hop]);
        const bool without = kind != 2;
        ASSERT_EQ(drawn.size(),
                  without ? std::min(wanted, eligible->size()) : (eligible->empty() ? 0 : wanted));
        if (kind == 1) {
          std::vector<std::int64_t> latest;
          std::vector<std::int64_t> got;
          for (const Neighbor& n : *eligible) latest.push_back(time(n));
          for (const Neighbor& n : drawn) got.push_back(time(n));
          std::sort(latest.rbegin(), latest.rend());
          std::sort(got.rbegin(), got.rend());
          latest.resize(got.size());
          EXPECT_EQ(got, latest);
        }
        EXPECT_TRUE(!without || testing::Contained(drawn, *eligible));
      }
    }
  }
}

// Samples lists of both directions. The time of an edge is the same from either endpoint.
TEST(TemporalSamplerTest, BothDirectionsAreCutAsOneList) {
  const std::uint64_t seed = testing::TestSeed();
  const auto time_of = [](VertexId a, VertexId b) {
    return ScatteredTime(std::min(a, b), std::max(a, b));
  };
  const auto open = Build(RandomInput(200, 3000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  const auto times = StampEdges(*open->graph, time_of);
  const std::vector<VertexId> seeds = testing::AllVertices(*open->graph);
  for (const bool typed : {false, true}) {
    for (const std::int64_t fanout : {kAllNeighbors, std::int64_t{4}}) {
      SamplerOptions options = Temporal({fanout}, times, seed);
      options.direction = Direction::kBoth;
      if (typed) options.meta_path = {1};
      if (fanout != kAllNeighbors) options.temporal_pick = TemporalPick::kLast;
      const std::vector<std::int64_t> seed_times(seeds.size(), 3);
      const auto sample = MakeSampler(*open->graph, options)->Sample(seeds, seed_times, 0);
      ASSERT_OK(sample);
      for (std::size_t v = 0; v < seeds.size(); ++v) {
        auto eligible = open->graph->Neighbors(seeds[v], Direction::kBoth);
        ASSERT_OK(eligible);
        std::erase_if(*eligible, [&](const Neighbor& n) {
          return time_of(n.vertex, seeds[v]) > 3 || (typed && n.type != 1);
        });
        auto drawn = DrawnFor(*open->graph, *sample, v);
        ASSERT_TRUE(testing::Contained(drawn, *eligible));
        if (fanout == kAllNeighbors) {
          EXPECT_EQ(drawn, *eligible);
          continue;
        }
        std::vector<std::int64_t> latest;
        std::vector<std::int64_t> got;
        for (const Neighbor& n : *eligible) latest.push_back(time_of(n.vertex, seeds[v]));
        for (const Neighbor& n : drawn) got.push_back(time_of(n.vertex, seeds[v]));
        std::sort(latest.rbegin(), latest.rend());
        std::sort(got.rbegin(), got.rend());
        latest.resize(std::min<std::size_t>(latest.size(), 4));
        EXPECT_EQ(got, latest);
      }
    }
  }
}

// Returns a graph with a random edge attribute `time`. Parallel edges have different times.
GraphInput TimedInput(std::uint64_t seed, bool undirected) {
  GraphInput input = RandomInput(120, 2500, true, seed);
  input.edges.weight.clear();
  input.undirected = undirected;
  input.edges.attributes = {EdgeAttribute("time")};
  std::mt19937_64 random(seed);
  for (std::size_t e = 0; e < input.edges.src.size(); ++e)
    input.edges.attributes[0].Add(static_cast<std::int64_t>(random() % 60));
  return input;
}

using TimedNeighbor = std::tuple<VertexId, TypeId, std::int64_t>;

// Returns all entries of a vertex's list that are not later than `now`, by a scan of the whole
// input.
std::vector<TimedNeighbor> EligibleOf(const GraphInput& input, VertexId vertex, Direction direction,
                                      std::int64_t now) {
  std::vector<TimedNeighbor> eligible;
  std::vector<std::int64_t> times(input.edges.size());
  std::memcpy(times.data(), input.edges.attributes[0].bytes().data(), 8 * times.size());
  const auto add = [&](VertexId src, VertexId dst, std::size_t e) {
    const VertexId at = direction == Direction::kIn ? dst : src;
    const VertexId other = direction == Direction::kIn ? src : dst;
    if (at == vertex && times[e] <= now)
      eligible.emplace_back(other, input.edges.type[e], times[e]);
  };
  for (std::size_t e = 0; e < input.edges.src.size(); ++e) {
    add(input.edges.src[e], input.edges.dst[e], e);
    if (input.undirected && input.edges.src[e] != input.edges.dst[e])
      add(input.edges.dst[e], input.edges.src[e], e);
  }
  std::sort(eligible.begin(), eligible.end());
  return eligible;
}

// Returns the draws for a vertex, each with the time found by its edge id.
std::vector<TimedNeighbor> TimedDraws(const GraphSnapshot& graph, const EdgeTimes& times,
                                      const SampledSubgraph& sample, std::size_t list) {
  std::vector<TimedNeighbor> drawn;
  const auto neighbors = DrawnFor(graph, sample, list);
  for (std::size_t i = 0; i < neighbors.size(); ++i) {
    const EdgeId edge = sample.edges[sample.offsets[list] + i];
    drawn.emplace_back(neighbors[i].vertex, neighbors[i].type,
                       times.OfPartition(edge.partition)[edge.position]);
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

std::vector<std::int64_t> LatestOf(const std::vector<TimedNeighbor>& entries, std::size_t count) {
  std::vector<std::int64_t> times;
  for (const auto& [vertex, type, time] : entries) times.push_back(time);
  std::sort(times.rbegin(), times.rend());
  times.resize(std::min(times.size(), count));
  return times;
}

// The times come from an edge attribute only. There are no weights, which would make the store keep
// the ids of in-edges.
TEST(TemporalSamplerTest, StoresWithAnAttributeAreWalkedBothWays) {
  const std::uint64_t seed = testing::TestSeed();
  for (const auto& [undirected, codec] :
       {std::pair(false, TopologyCodec::kNone), std::pair(false, TopologyCodec::kEliasFano),
        std::pair(true, TopologyCodec::kNone)}) {
    const GraphInput input = TimedInput(seed, undirected);
    BuildOptions build = RandomPartitions(3);
    build.topology_codec = codec;
    const auto open = Build(TimedInput(seed, undirected), build);
    ASSERT_NE(open, nullptr);
    const auto times = LoadEdgeTimes(*open->graph, "time");
    ASSERT_OK(times);
    const std::vector<VertexId> seeds = {0, 1, 2, 3, 50, 77};
    const std::vector<std::int64_t> seed_times = {30, 59, 5, -1, 20, 40};
    for (const Direction direction : {Direction::kIn, Direction::kOut}) {
      for (const TemporalPick pick : {TemporalPick::kUniform, TemporalPick::kLast}) {
        SamplerOptions options = Temporal({7, 4}, *times, seed);
        options.direction = direction;
        options.temporal_pick = pick;
        options.edge_ids = true;
        const auto sample = MakeSampler(*open->graph, options)->Sample(seeds, seed_times, 0);
        ASSERT_OK(sample);
        for (std::size_t v = 0; v < sample->hop_offsets[2]; ++v) {
          const auto eligible = EligibleOf(input, *open->graph->VertexAt(sample->rows[v]),
                                           direction, seed_times[sample->seed_of[v]]);
          const auto drawn = TimedDraws(*open->graph, **times, *sample, v);
          const std::size_t fanout = v < sample->hop_offsets[1] ? 7 : 4;
          ASSERT_EQ(drawn.size(), std::min(fanout, eligible.size()));
          ASSERT_TRUE(std::ranges::includes(eligible, drawn));
          if (pick == TemporalPick::kLast) {
            ASSERT_EQ(LatestOf(drawn, fanout), LatestOf(eligible, fanout));
          }
        }
      }
    }
  }
}

// Expects that all sets of the eligible edges of a star are equally likely, for any partitioning.
void ExpectEqualSets(TemporalPick pick, std::int64_t now, std::int64_t fanout,
                     const std::vector<std::vector<VertexId>>& sets, std::uint64_t seed) {
  for (const std::uint32_t partitions : {1U, 3U}) {
    // The store has only in-edges, whose ids need no section.
    const auto open = Build(StarInput(6), RandomPartitions(partitions, Direction::kIn));
    ASSERT_NE(open, nullptr);
    // The times are 10, 20, 30, 30, 30, 40.
    const auto times = StampEdges(*open->graph, [](VertexId src, VertexId) {
      return src <= 2 ? 10 * src : src <= 5 ? 30 : 40;
    });
    SamplerOptions options = Temporal({fanout}, times, seed);
    options.temporal_pick = pick;
    const auto sampler = MakeSampler(*open->graph, options);
    ASSERT_NE(sampler, nullptr);
    std::map<std::vector<VertexId>, double> law;
    for (const auto& set : sets) law[set] = 1.0 / static_cast<double>(sets.size());
    const auto observed = CountSets(*open->graph, *sampler, kSamplerTemporalTrials, {now});
    ExpectLaw(observed, law, static_cast<double>(kSamplerTemporalTrials));
  }
}

TEST(TemporalSamplerTest, SetsOfWhatIsNotTooLateAreEquallyLikely) {
  const std::uint64_t seed = testing::TestSeed();
  ExpectEqualSets(TemporalPick::kUniform, 30, 2,
                  {{1, 2}, {1, 3}, {1, 4}, {1, 5}, {2, 3}, {2, 4}, {2, 5}, {3, 4}, {3, 5}, {4, 5}},
                  seed);
}

TEST(TemporalSamplerTest, TheLatestAreTakenAndTiesAreEquallyLikely) {
  const std::uint64_t seed = testing::TestSeed();
  ExpectEqualSets(TemporalPick::kLast, 100, 3, {{3, 4, 6}, {3, 5, 6}, {4, 5, 6}}, seed);
}

TEST(TemporalSamplerTest, TimesAreReadFromAnEdgeAttribute) {
  const std::uint64_t seed = testing::TestSeed();
  for (const Direction directions : {Direction::kBoth, Direction::kIn}) {
    GraphInput input = RandomInput(200, 3000, false, seed);
    input.edges.attributes = {EdgeAttribute("time"), EdgeAttribute("amount")};
    for (std::size_t e = 0; e < input.edges.src.size(); ++e) {
      input.edges.attributes[0].Add(ScatteredTime(input.edges.src[e], input.edges.dst[e]));
      input.edges.attributes[1].Add(0.5F);
    }
    const auto open = Build(std::move(input), RandomPartitions(3, directions));
    ASSERT_NE(open, nullptr);
    const auto times = LoadEdgeTimes(*open->graph, "time");
    ASSERT_OK(times);
    const auto expected = StampEdges(*open->graph, ScatteredTime);
    for (std::uint32_t p = 0; p < 3; ++p) {
      EXPECT_TRUE(std::ranges::equal((*times)->OfPartition(p), expected->OfPartition(p)));
    }
    EXPECT_OK(Sampler::Create(*open->graph, Temporal({3}, *times, seed)));
    EXPECT_STATUS(LoadEdgeTimes(*open->graph, "nothing"), kNotFound);
    EXPECT_STATUS(LoadEdgeTimes(*open->graph, "amount"), kInvalidArgument);
  }
}

TEST(TemporalSamplerTest, TimesAreAskedForWhereTheyMatter) {
  const auto open = Build(StarInput(4), RandomPartitions(2, Direction::kIn));
  ASSERT_NE(open, nullptr);
  const auto times = StampEdges(*open->graph, [](VertexId src, VertexId) { return src; });
  const auto sampler = MakeSampler(*open->graph, Temporal({2}, times, 1));
  EXPECT_STATUS(sampler->Sample(std::vector<VertexId>{0}, 0), kInvalidArgument);
  EXPECT_STATUS(sampler->Sample(std::vector<VertexId>{0}, std::vector<std::int64_t>{1, 2}, 0),
                kInvalidArgument);
  EXPECT_OK(sampler->Sample(std::vector<VertexId>{0}, std::vector<std::int64_t>{1}, 0));
}

}  // namespace
}  // namespace rhizome
