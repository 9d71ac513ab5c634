// Compares induced subgraphs, and times of vertices, with the lists that Graph merges with other
// code.

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/sampler_graphs.h"
#include "rhizome/ingest.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

std::vector<Direction> WalkableIn(const GraphSnapshot& graph) {
  if (graph.info().symmetric || graph.info().directions == Direction::kBoth)
    return {Direction::kOut, Direction::kIn, Direction::kBoth};
  return {graph.info().directions};
}

/// Returns the neighbours of a vertex for which `keep` returns true, sorted.
std::vector<Neighbor> ListWith(const Graph& graph, VertexId vertex, Direction direction,
                               const std::function<bool(VertexId)>& keep) {
  auto list = graph.Neighbors(vertex, direction);
  EXPECT_OK(list);
  if (!list) return {};
  std::erase_if(*list, [&](const Neighbor& neighbor) { return !keep(neighbor.vertex); });
  testing::Sort(*list);
  return *list;
}

TEST(SamplerInducedTest, AllEdgesBetweenTheVerticesAreThereAndNoOthers) {
  std::mt19937_64 rng(testing::TestSeed());
  testing::WithUpdatedGraphs(rng, [&](const Graph& live) {
    const auto graph = live.Snapshot();
    for (const Direction direction : WalkableIn(*graph)) {
      SamplerOptions options = testing::Fanouts({2, 1});
      if (rng() % 4 == 0) options.fanouts.clear();
      options.direction = direction;
      options.seed = rng();
      options.replace = rng() % 3 == 0;
      std::vector<VertexId> seeds = testing::AllVertices(*graph);
      std::shuffle(seeds.begin(), seeds.end(), rng);
      seeds.resize(std::min<std::size_t>(seeds.size(), 5));
      const auto drawn = testing::MakeSampler(*graph, options)->Sample(seeds, 3);
      ASSERT_OK(drawn);
      options.induced = true;
      const auto induced = testing::MakeSampler(*graph, options)->Sample(seeds, 3);
      ASSERT_OK(induced);
      EXPECT_EQ(induced->rows, drawn->rows);
      EXPECT_EQ(induced->hop_offsets, drawn->hop_offsets);
      ASSERT_EQ(induced->offsets.size(), induced->rows.size() + 1);
      const std::size_t hops = std::max<std::size_t>(options.fanouts.size(), 1);
      ASSERT_EQ(induced->hop_lists.size(), hops + 1);
      EXPECT_EQ(induced->hop_lists[1], induced->rows.size());
      std::vector<bool> inside(graph->vertex_count(), false);
      for (const Row row : induced->rows) inside[static_cast<std::size_t>(row)] = true;
      const auto is_inside = [&](VertexId vertex) -> bool {
        return inside[static_cast<std::size_t>(*graph->RowOf(vertex))];
      };
      for (std::size_t v = 0; v < induced->rows.size(); ++v) {
        auto found = testing::DrawnFor(*graph, *induced, v);
        testing::Sort(found);
        EXPECT_EQ(found,
                  ListWith(*graph, *graph->VertexAt(induced->rows[v]), direction, is_inside));
      }
      options.threads = 3;
      const auto parallel = testing::MakeSampler(*graph, options)->Sample(seeds, 3);
      ASSERT_OK(parallel);
      EXPECT_TRUE(testing::Same(*induced, *parallel));
    }
  });
}

TEST(SamplerInducedTest, EveryTypeAndWeightIsThereAndEdgeIdsAreThoseOfTheEdges) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open =
      testing::Build(testing::RandomInput(9000, 60000, true, seed), testing::RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  SamplerOptions options;
  options.typed_fanouts = {{3, 0, 1}, {0, 2, 0}};  // type 2 is used in one hop only
  options.weighted = true;
  options.induced = true;
  options.edge_ids = true;
  std::vector<VertexId> seeds(6000);  // more than are processed at a time
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = static_cast<VertexId>(i);
  const auto sample = testing::MakeSampler(*open->graph, options)->Sample(seeds, 0);
  ASSERT_OK(sample);
  // A source that reads the lists of a whole hop at once, as from a disk, produces the same sample.
  const auto source = std::make_shared<testing::CountingSource>(*open->graph, true);
  const auto elsewhere = Sampler::Create(*open->graph, options, source);
  ASSERT_OK(elsewhere);
  const auto read = (*elsewhere)->Sample(seeds, 0);
  ASSERT_OK(read);
  EXPECT_TRUE(testing::Same(*read, *sample));
  std::vector<bool> inside(9000, false);
  for (const Row row : sample->rows) inside[static_cast<std::size_t>(row)] = true;
  const auto is_inside = [&](VertexId vertex) -> bool {
    return inside[static_cast<std::size_t>(*open->graph->RowOf(vertex))];
  };
  for (std::size_t v = 0; v < sample->rows.size(); v += 97) {
    auto found = testing::DrawnFor(*open->graph, *sample, v);
    testing::Sort(found);
    const VertexId vertex = *open->graph->VertexAt(sample->rows[v]);
    EXPECT_EQ(found, ListWith(*open->graph, vertex, Direction::kIn, is_inside));
    for (std::uint64_t e = sample->offsets[v]; e < sample->offsets[v + 1]; ++e) {
      const EdgeId edge = sample->edges[e];
      EXPECT_EQ(*open->graph->TypeOfEdge(edge), sample->types[e]);
      EXPECT_EQ(open->graph->partition(edge.partition).Weight(Direction::kOut, edge.position),
                sample->weights[e]);
    }
  }
  for (const auto& change :
       {std::function([](SamplerOptions& o) { o.disjoint = true; }),
        std::function([](SamplerOptions& o) { o.frontier = Frontier::kAgain; })}) {
    SamplerOptions wrong = options;
    change(wrong);
    EXPECT_STATUS(Sampler::Create(*open->graph, wrong), kInvalidArgument);
  }
}

/// Adds the array `name` with one column to a graph.
template <typename T>
void AddTimes(GraphInput& input, const std::string& name, DataType dtype, std::vector<T> times) {
  ArrayInput array;
  array.name = name;
  array.dim = 1;
  array.dtype = dtype;
  array.read_rows = [times = std::move(times)](std::span<const VertexId> vertices,
                                               std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i)
      std::memcpy(out.data() + i * sizeof(T), &times[static_cast<std::size_t>(vertices[i])],
                  sizeof(T));
    return Status::Ok();
  };
  input.arrays.push_back(std::move(array));
}

TEST(SamplerVertexTimesTest, NoNeighborIsLaterThanItsSeed) {
  std::mt19937_64 rng(testing::TestSeed());
  constexpr Direction kDirections[] = {Direction::kOut, Direction::kIn, Direction::kBoth};
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    testing::RandomGraphOptions about;
    about.vertices = 25;
    about.edges = 120;
    about.edge_types = 1 + static_cast<std::uint32_t>(rng() % 2);
    about.undirected = rng() % 3 == 0;
    GraphInput input = testing::RandomGraph(rng, about);
    std::vector<std::int64_t> times(25);
    for (std::int64_t& time : times) time = static_cast<std::int64_t>(rng() % 20);
    AddTimes(input, "when", DataType::kInt64, times);
    AddTimes(input, "narrow", DataType::kInt32,
             std::vector<std::int32_t>(times.begin(), times.end()));
    AddTimes(input, "real", DataType::kFloat32, std::vector<float>(25, 1));
    BuildOptions options = testing::RandomPartitions(1 + static_cast<std::uint32_t>(rng() % 3),
                                                     kDirections[round % 3]);
    const testing::TempDir folder;
    ASSERT_OK(testing::BuildStore(folder / "g.rz", std::move(input), options));
    const auto store = testing::OpenStore(folder / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    for (int step = 0; step < 3; ++step) {
      const auto fixed = (*graph)->Snapshot();
      const auto everyone = testing::AllVertices(*fixed);
      std::vector<std::int64_t> when(everyone.size());
      ASSERT_OK(fixed->ReadRows("when", everyone, std::as_writable_bytes(std::span(when))));
      for (const Direction direction : WalkableIn(*fixed)) {
        SamplerOptions temporal = testing::Fanouts({kAllNeighbors});
        temporal.direction = direction;
        temporal.disjoint = true;
        const auto loaded =
            LoadVertexTimes(*fixed, step == 0 && rng() % 2 == 0 ? "narrow" : "when", direction);
        ASSERT_OK(loaded);
        temporal.times = *loaded;
        std::vector<std::int64_t> limits;
        for (std::size_t i = 0; i < everyone.size(); ++i)
          limits.push_back(static_cast<std::int64_t>(rng() % 24) - 2);
        const auto sample = testing::MakeSampler(*fixed, temporal)->Sample(everyone, limits, 0);
        ASSERT_OK(sample);
        for (std::size_t v = 0; v < everyone.size(); ++v) {
          auto found = testing::DrawnFor(*fixed, *sample, v);
          testing::Sort(found);
          EXPECT_EQ(found, ListWith(*fixed, everyone[v], direction, [&](VertexId neighbor) {
                      return when[static_cast<std::size_t>(neighbor)] <= limits[v];
                    }));
        }
      }
      WriteBatch batch;  // edges, new vertices with and without a time, changed times
      for (int i = 0; i < 12; ++i)
        batch.PutEdge(static_cast<VertexId>(rng() % 25), static_cast<VertexId>(rng() % 27), {});
      batch.DeleteEdge(everyone[rng() % 25], everyone[rng() % 25], "");
      for (const VertexId vertex : {VertexId{25}, static_cast<VertexId>(rng() % 25)}) {
        const auto time = static_cast<std::int64_t>(rng() % 20);
        batch.PutRow(vertex, "when", std::span(&time, 1));
      }
      ASSERT_OK((*graph)->Write(batch, {.sync = false}));
    }
    const auto fixed = (*graph)->Snapshot();
    const Direction kept = WalkableIn(*fixed).front();
    EXPECT_STATUS(LoadVertexTimes(*fixed, "real", kept), kInvalidArgument);
    EXPECT_STATUS(LoadVertexTimes(*fixed, "none", kept), kNotFound);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rhizome
