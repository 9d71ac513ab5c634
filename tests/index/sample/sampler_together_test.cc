#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/sample/compressed_neighbors.h"
#include "index/sample/edge_times_in_memory.h"
#include "index/sample/joined_neighbors.h"
#include "index/sample/sampled_directions.h"
#include "index/sampler_graphs.h"
#include "index/topology/adjacency.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"
#include "testing/update_history.h"

// Tests of subgraphs that are sampled together from lists on disk. The oracle is the same sampler
// with lists in memory, which samples one subgraph at a time.

namespace rhizome {
namespace {

using testing::CountingSource;
using testing::Fanouts;
using testing::MakeSampler;
using testing::Same;

/// Lists in memory that are looked up as if they were on disk.
class AsOnDisk final : public NeighborSource {
 public:
  AsOnDisk(const GraphSnapshot& graph, Direction direction) {
    const WalkedSides sides(graph, direction);
    lists_ = ResidentNeighbors(graph, sides.direction(0)).value();
    if (sides.count() == 1) return;
    lists_ = std::make_shared<JoinedNeighbors>(
        graph, lists_, ResidentNeighbors(graph, sides.direction(1)).value());
  }
  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override {
    return lists_->LookUp(entries, rows);
  }
  bool wants_whole_hops() const override { return true; }

 private:
  std::shared_ptr<const NeighborSource> lists_;
};

/// Subgraphs to sample, and the memory of their spans.
struct Requests {
  std::vector<std::vector<VertexId>> seeds;
  std::vector<std::vector<std::int64_t>> times;
  std::vector<std::vector<VertexPair>> left_out;
  std::vector<SampleRequest> all;
};

Requests DrawRequests(const GraphSnapshot& graph, const SamplerOptions& options, std::size_t count,
                      std::size_t most_seeds, std::mt19937_64& random) {
  Requests drawn;
  const auto vertex = [&] { return static_cast<VertexId>(random() % graph.vertex_count()); };
  drawn.seeds.resize(count);
  drawn.times.resize(count);
  drawn.left_out.resize(count);
  for (std::size_t r = 0; r < count; ++r) {
    for (std::uint64_t i = random() % (most_seeds + 1); i > 0; --i) {
      drawn.seeds[r].push_back(vertex());
      if (options.times != nullptr)
        drawn.times[r].push_back(static_cast<std::int64_t>(random() % 9));
    }
    const bool leaves_out = random() % 2 == 0;
    for (std::size_t i = 0; leaves_out && i < drawn.seeds[r].size(); ++i) {
      const VertexId seed = drawn.seeds[r][i];
      const auto list = graph.Neighbors(seed, options.direction);
      if (list && !list->empty())
        drawn.left_out[r].push_back({(*list)[random() % list->size()].vertex, seed, 0});
    }
    // Some requests have equal numbers of batches, and so the same draws for a vertex.
    drawn.all.push_back({.seeds = drawn.seeds[r],
                         .seed_times = drawn.times[r],
                         .batch = random() % 4,
                         .left_out = drawn.left_out[r]});
  }
  return drawn;
}

void ExpectSameTogether(const GraphSnapshot& graph, SamplerOptions options,
                        const Requests& requests) {
  const auto alone = MakeSampler(graph, options);
  ASSERT_NE(alone, nullptr);
  for (const std::uint32_t threads : {1U, 3U}) {
    options.threads = threads;
    const auto together =
        Sampler::Create(graph, options, std::make_shared<AsOnDisk>(graph, options.direction));
    ASSERT_OK(together);
    std::size_t next = 0;
    ASSERT_OK((*together)->SampleTogether(requests.all, [&](std::size_t i, SampledSubgraph& got) {
      EXPECT_EQ(i, next++);
      const SampleRequest& request = requests.all[i];
      SampledSubgraph expected;
      EXPECT_OK(alone->SampleInto(request.seeds, request.seed_times, request.batch,
                                  request.left_out, expected));
      EXPECT_TRUE(Same(got, expected)) << "request " << i << " of " << requests.all.size();
      return Status::Ok();
    }));
    EXPECT_EQ(next, requests.all.size());
  }
}

/// Returns options of a random kind of sampling. `weighted`: whether it may be weighted.
SamplerOptions DrawOptions(const GraphSnapshot& graph, Direction direction, bool weighted,
                           std::mt19937_64& random) {
  SamplerOptions options = Fanouts({3, 2, kAllNeighbors});
  options.direction = direction;
  options.seed = random();
  options.replace = random() % 3 == 0;
  options.disjoint = random() % 3 == 0;
  options.types_by_side = random() % 2 == 0;
  options.weighted = weighted && random() % 3 == 0;
  if (options.replace) options.fanouts.back() = 2;
  if (!options.disjoint && random() % 3 == 0) options.frontier = Frontier::kAgain;
  if (random() % 3 == 0) {
    options.fanouts.clear();
    options.typed_fanouts.assign(2, std::vector<std::int64_t>(graph.edge_types().size(), 1));
  }
  bool kept = true;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p)
    kept = kept && graph.partition(p).has_edge_ids(Direction::kIn);
  options.edge_ids = kept && random() % 2 == 0;
  options.induced = !options.disjoint && options.frontier == Frontier::kOnce && random() % 8 == 0;
  return options;
}

TEST(SamplerTogetherTest, RandomHistoriesGiveTheSameSubgraphs) {
  std::mt19937_64 random(testing::TestSeed());
  testing::WithUpdatedGraphs(random, [&](const Graph& graph) {
    const auto snapshot = graph.Snapshot();
    const auto& info = snapshot->info();
    std::vector<Direction> directions = {info.directions};
    if (info.symmetric || info.directions == Direction::kBoth)
      directions = {Direction::kOut, Direction::kIn, Direction::kBoth};
    for (const Direction direction : directions) {
      for (int round = 0; round < 4; ++round) {
        const SamplerOptions options =
            DrawOptions(*snapshot, direction, /*weighted=*/false, random);
        ExpectSameTogether(*snapshot, options,
                           DrawRequests(*snapshot, options, random() % 6, 6, random));
      }
    }
  });
}

/// The frontiers have many windows, whose vertices belong to many subgraphs.
TEST(SamplerTogetherTest, LargeFrontiersGiveTheSameSubgraphs) {
  std::mt19937_64 random(testing::TestSeed());
  const auto built = testing::Build(testing::RandomInput(4000, 30000, true, random()),
                                    testing::RandomPartitions(3));
  ASSERT_NE(built, nullptr);
  const GraphSnapshot& graph = *built->graph;
  for (int round = 0; round < 2; ++round) {
    const SamplerOptions options = DrawOptions(graph, Direction::kIn, /*weighted=*/true, random);
    const Requests requests = DrawRequests(graph, options, 20, 200, random);
    ExpectSameTogether(graph, options, requests);
  }
}

TEST(SamplerTogetherTest, TimesAreThoseOfEachSubgraph) {
  std::mt19937_64 random(testing::TestSeed());
  const auto built = testing::Build(testing::RandomInput(1000, 9000, true, random()),
                                    testing::RandomPartitions(3));
  ASSERT_NE(built, nullptr);
  const GraphSnapshot& graph = *built->graph;
  std::vector<std::vector<std::int64_t>> times(graph.partition_count());
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p)
    for (std::uint64_t e = 0; e < graph.partition(p).edge_count(); ++e)
      times[p].push_back(static_cast<std::int64_t>(random() % 9));
  for (const TemporalPick pick : {TemporalPick::kUniform, TemporalPick::kLast}) {
    SamplerOptions options = Fanouts({4, 3});
    options.disjoint = true;
    options.seed = random();
    options.temporal_pick = pick;
    options.times = std::make_shared<EdgeTimesInMemory>(times);
    ExpectSameTogether(graph, options, DrawRequests(graph, options, 12, 40, random));
  }
}

/// Each draw is looked up once, in fewer calls than the hops of all subgraphs.
TEST(SamplerTogetherTest, AHopIsOneSweep) {
  std::mt19937_64 random(testing::TestSeed());
  const auto built = testing::Build(testing::RandomInput(500, 4000, false, random()),
                                    testing::RandomPartitions(2));
  ASSERT_NE(built, nullptr);
  const GraphSnapshot& graph = *built->graph;
  const SamplerOptions options = Fanouts({2, 2});
  const Requests requests = DrawRequests(graph, options, 16, 4, random);
  const auto source = std::make_shared<CountingSource>(graph, /*whole_hops=*/true);
  const auto sampler = Sampler::Create(graph, options, source);
  ASSERT_OK(sampler);
  std::uint64_t edges = 0;
  const SampleSink count = [&](std::size_t, const SampledSubgraph& subgraph) {
    edges += subgraph.neighbors.size();
    return Status::Ok();
  };
  Requests whole = requests;
  for (SampleRequest& request : whole.all) request.left_out = {};
  ASSERT_OK((*sampler)->SampleTogether(whole.all, count));
  EXPECT_EQ(source->looked_up, edges);
  EXPECT_EQ(source->calls, 2U);
  source->calls = 0;
  for (const SampleRequest& request : whole.all)
    ASSERT_OK((*sampler)->SampleTogether({&request, 1}, count));
  EXPECT_GT(source->calls, 16U);
}

TEST(SamplerTogetherTest, ErrorsEndTheCallAndNotTheSampler) {
  std::mt19937_64 random(testing::TestSeed());
  const auto built = testing::Build(testing::RandomInput(2000, 16000, true, random()),
                                    testing::RandomPartitions(2));
  ASSERT_NE(built, nullptr);
  const GraphSnapshot& graph = *built->graph;
  SamplerOptions options = Fanouts({40, 40});
  options.threads = 2;
  const Requests requests = DrawRequests(graph, options, 10, 300, random);
  const auto source = std::make_shared<CountingSource>(graph, /*whole_hops=*/true);
  const auto sampler = Sampler::Create(graph, options, source);
  ASSERT_OK(sampler);
  std::vector<SampledSubgraph> kept;
  const SampleSink keep = [&](std::size_t, SampledSubgraph& subgraph) {
    kept.push_back(std::move(subgraph));
    return Status::Ok();
  };
  ASSERT_OK((*sampler)->SampleTogether(requests.all, keep));
  const std::vector<SampledSubgraph> expected = std::exchange(kept, {});
  const std::uint64_t calls = source->calls;
  ASSERT_GT(calls, 2U);
  for (std::uint64_t fail_at = 1; fail_at <= calls; ++fail_at) {
    source->calls = 0;
    source->fail_at = fail_at;
    EXPECT_STATUS((*sampler)->SampleTogether(requests.all, keep), kIoError);
    EXPECT_TRUE(kept.empty());
  }
  source->fail_at = 0;
  std::vector<SampleRequest> wrong = requests.all;
  const std::vector<VertexId> unknown = {0, static_cast<VertexId>(graph.vertex_count())};
  wrong.back().seeds = unknown;
  EXPECT_STATUS((*sampler)->SampleTogether(wrong, keep), kInvalidArgument);
  EXPECT_TRUE(kept.empty());
  const SampleSink refuse = [&](std::size_t request, const SampledSubgraph&) {
    return request == 3 ? Status::OutOfSpace("told to") : Status::Ok();
  };
  EXPECT_STATUS((*sampler)->SampleTogether(requests.all, refuse), kOutOfSpace);
  ASSERT_OK((*sampler)->SampleTogether(requests.all, keep));
  ASSERT_EQ(kept.size(), expected.size());
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(Same(kept[i], expected[i]));
}

}  // namespace
}  // namespace rhizome
