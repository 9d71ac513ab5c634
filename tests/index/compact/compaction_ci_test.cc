#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <tuple>

#include "index/compact/compaction.h"
#include "rhizome/graph.h"
#include "storage/array/array_versions.h"
#include "testing/update_history.h"

// Tests of compaction: random histories compared with a model, concurrent writers and readers,
// cancellation, marks of outdated embeddings, and the values that must be carried over.

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::DrawBase;
using testing::ExpectVerifies;
using testing::RandomBase;
using testing::TempDir;
using testing::UpdateModel;

/// A store with a few updates, open for writing.
struct Updated {
  Updated(std::mt19937_64& rng, const Path& path) : base(DrawBase(rng)), model(base.input) {
    string_ids = base.string_ids();
    directions = base.options.directions;
    EXPECT_OK(BuildStore(path, std::move(base.input), base.options));
    auto opened = testing::OpenStore(path, Store::Mode::kWrite);
    EXPECT_OK(opened);
    store = *std::move(opened);
    auto live = Graph::Open(*store);
    EXPECT_OK(live);
    graph = *std::move(live);
    for (int i = 0; i < 5; ++i) Update(rng);
  }
  void Update(std::mt19937_64& rng) {
    const WriteBatch batch = model.DrawBatch(rng, string_ids, 8);
    model.Apply(batch);
    EXPECT_OK(graph->Write(batch, {.sync = false, .create_types = true}));
  }

  RandomBase base;
  UpdateModel model;
  bool string_ids = false;
  Direction directions = Direction::kBoth;
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};

/// Lists the generations of a store. Earlier generations are removed in the background, so the
/// graph must be closed, or its next compaction must have started.
std::vector<std::string> GenerationsOf(const Path& store) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(store / "generations"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CompactionTest, HistoriesAgreeWithANaiveModel) {
  std::mt19937_64 rng(testing::TestSeed());
  testing::RunHistories(rng, 4, /*compact=*/true);
}

// Everything that is written during a compaction is in the delta of the new generation.
TEST(CompactionTest, WritersGoOn) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 3; ++round) {
    TempDir dir;
    Updated updated(rng, dir / "g.rz");
    std::atomic<bool> done{false};
    std::thread compactor([&] {
      const JobControl control;
      EXPECT_OK(updated.graph->Compact({.keep_generations = 0, .threads = 2}, control));
      done = true;
    });
    int written = 0;
    for (; !done || written < 3; ++written) updated.Update(rng);
    compactor.join();
    updated.model.ExpectAgrees(*updated.graph, updated.directions);
    updated.graph.reset();
    EXPECT_EQ(GenerationsOf(dir / "g.rz"), std::vector<std::string>{"000002"});
    updated.store.reset();
    ExpectVerifies(dir / "g.rz");
    const auto again = testing::OpenStoreGraph(dir / "g.rz");
    ASSERT_OK(again);
    updated.model.ExpectAgrees(*again->graph, updated.directions);
  }
}

// A compaction that is cancelled at any progress report leaves only the old generation.
TEST(CompactionTest, CancelledItChangesNothing) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Updated updated(rng, dir / "g.rz");
  bool compacted = false;
  for (int stop = 0; !compacted; ++stop) {
    ASSERT_LT(stop, 200);
    int reports = 0;
    JobControl* running = nullptr;
    JobControl control([&](const JobControl::Progress&) {
      if (reports++ == stop) running->Cancel();
    });
    running = &control;
    const auto result = updated.graph->Compact({}, control);
    compacted = result.has_value();
    updated.model.ExpectAgrees(*updated.graph, updated.directions);
    if (compacted) break;
    EXPECT_STATUS(result, kInterrupted);
    EXPECT_EQ(GenerationsOf(dir / "g.rz"), std::vector<std::string>{"000001"});
  }
  ExpectVerifies(dir / "g.rz");
}

// A reader of an old generation keeps working after any number of later generations. Its files and
// the rows of its delta are kept while it is open.
TEST(CompactionTest, AnOldReaderKeepsWhatItSees) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Updated updated(rng, dir / "g.rz");
  const UpdateModel before = updated.model;
  auto reader = testing::OpenStore(dir / "g.rz", Store::Mode::kRead);
  ASSERT_OK(reader);
  auto old = Graph::Open(**reader, {.topology = TopologyPlace::kDirect});
  ASSERT_OK(old);
  const JobControl control;
  for (int i = 0; i < 3; ++i) {
    updated.Update(rng);
    ASSERT_OK(updated.graph->Compact({.keep_generations = 0}, control));
    before.ExpectAgrees(**old, updated.directions);
  }
  updated.graph.reset();
  EXPECT_EQ(GenerationsOf(dir / "g.rz"), (std::vector<std::string>{"000001", "000004"}));
  auto live = Graph::Open(*updated.store);
  ASSERT_OK(live);
  updated.graph = *std::move(live);
  updated.Update(rng);
  ASSERT_OK((*old)->Refresh());
  updated.model.ExpectAgrees(**old, updated.directions);
  updated.Update(rng);
  ASSERT_OK(updated.graph->Compact({}, control));
  updated.graph.reset();
  const auto left = GenerationsOf(dir / "g.rz");
  EXPECT_TRUE(std::find(left.begin(), left.end(), "000001") == left.end());
}

// The embeddings have two layers, on a path 0 -> 1 -> ... -> 9, so the effect of an update is
// known.
TEST(CompactionTest, EmbeddingsWithChangedInputsAreMarked) {
  GraphInput input;
  input.vertex_count = 10;
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  for (VertexId v = 0; v < 9; ++v) {
    input.edges.src.push_back(v);
    input.edges.dst.push_back(v + 1);
  }
  UpdateModel::AddRows(input);
  ArrayInput embedding = input.arrays.front();
  embedding.name = "emb";
  embedding.attributes = {
      {"fanout", "all,all"}, {"features", "feat"}, {"made_by", "infer layerwise"}};
  input.arrays.push_back(std::move(embedding));
  for (const Direction directions : {Direction::kBoth, Direction::kOut, Direction::kIn}) {
    GraphInput copy = input;
    TempDir dir;
    BuildOptions options;
    options.directions = directions;
    ASSERT_OK(BuildStore(dir / "g.rz", std::move(copy), options));
    auto store = testing::OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    const JobControl control;
    const auto stale = [&] {
      const auto array = (*graph)->Snapshot()->store().OpenArray("emb.stale");
      std::vector<int> marked;
      for (VertexId v = 0; array && v < static_cast<VertexId>((*graph)->vertex_count()); ++v) {
        std::byte flag{};
        EXPECT_OK((*graph)->ReadRows("emb.stale", std::span(&v, 1), std::span(&flag, 1)));
        if (flag != std::byte{0}) marked.push_back(static_cast<int>(v));
      }
      return marked;
    };
    // New features of vertex 4 affect vertices up to two edges away.
    WriteBatch batch;
    batch.PutRow(std::int64_t{4}, "feat", std::span<const float>(std::vector<float>{1, 2, 3}));
    ASSERT_OK((*graph)->Write(batch));
    ASSERT_OK((*graph)->Compact({}, control));
    EXPECT_EQ(stale(), (std::vector<int>{4, 5, 6}));
    // A changed neighbour list affects vertices one edge away, and earlier marks are kept.
    batch.Clear();
    batch.DeleteEdge(std::int64_t{0}, std::int64_t{1});
    batch.PutEdge(std::int64_t{10}, std::int64_t{9});
    ASSERT_OK((*graph)->Write(batch));
    ASSERT_OK((*graph)->Compact({}, control));
    EXPECT_EQ(stale(), (std::vector<int>{1, 2, 4, 5, 6, 9, 10}));
    const ArrayEntry* entry = (*graph)->Snapshot()->store().manifest().FindArray("emb");
    ASSERT_NE(entry, nullptr);
    const std::pair<std::string, std::string> count{"stale_rows", "7"};
    EXPECT_NE(std::find(entry->attributes.begin(), entry->attributes.end(), count),
              entry->attributes.end());
    EXPECT_EQ(RowsGiven(*entry), 10U);  // vertex 10 has no row
  }
}

// A vertex without a label belongs to no class and no set, before and after a compaction.
TEST(CompactionTest, NewVerticesHaveNoLabel) {
  GraphInput input;
  input.vertex_count = 2;
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  const auto add = [&](const char* name, DataType dtype) {
    ArrayInput array;
    array.name = name;
    array.dim = 1;
    array.dtype = dtype;
    array.read_rows = [](std::span<const VertexId>, std::span<std::byte> out) {
      std::fill(out.begin(), out.end(), std::byte{0});
      return Status::Ok();
    };
    input.arrays.push_back(std::move(array));
  };
  add("label", DataType::kInt64);
  add("split", DataType::kUint8);
  add("score", DataType::kInt64);
  TempDir dir;
  ASSERT_OK(BuildStore(dir / "g.rz", std::move(input), {}));
  auto store = testing::OpenStore(dir / "g.rz", Store::Mode::kWrite);
  ASSERT_OK(store);
  auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  WriteBatch batch;
  batch.PutEdge(std::int64_t{0}, std::int64_t{2});
  ASSERT_OK((*graph)->Write(batch));
  const auto expect = [&] {
    const VertexId fresh = 2;
    std::int64_t label = 0;
    std::uint8_t split = 0;
    std::int64_t score = 5;
    const auto read = [&](const char* name, auto& value) {
      ASSERT_OK((*graph)->ReadRows(name, std::span(&fresh, 1),
                                   std::as_writable_bytes(std::span(&value, 1))));
    };
    read("label", label);
    read("split", split);
    read("score", score);
    EXPECT_EQ(label, -1);
    EXPECT_EQ(split, 255);
    EXPECT_EQ(score, 0);
  };
  expect();
  const JobControl control;
  const auto compacted = (*graph)->Compact({}, control);
  ASSERT_OK(compacted);
  EXPECT_EQ(compacted->commits, 1U);
  expect();
}

// Edges of the generation and of the delta keep their attributes, and expired edges are dropped.
TEST(CompactionTest, EdgeAttributesAreCarriedAndOldEdgesExpire) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    GraphInput input;
    input.vertex_count = 12;
    input.vertex_type_names = {"vertex"};
    input.edge_type_names = {"edge"};
    input.undirected = round % 3 == 2;
    EdgeAttribute time("time");
    EdgeAttribute amount("amount", DataType::kFloat32, /*dim=*/2);
    // The expected edges (source, target, time). Edges of an undirected graph are listed from both
    // endpoints.
    std::multiset<std::tuple<VertexId, VertexId, std::int64_t>> expected;
    const auto expect = [&](VertexId src, VertexId dst, std::int64_t at) {
      expected.insert({src, dst, at});
      if (input.undirected && src != dst) expected.insert({dst, src, at});
    };
    for (int e = 0; e < 30; ++e) {
      const auto src = static_cast<VertexId>(rng() % 12);
      const auto dst = static_cast<VertexId>(rng() % 12);
      const auto at = static_cast<std::int64_t>(rng() % 100);
      input.edges.src.push_back(src);
      input.edges.dst.push_back(dst);
      time.Add(at);
      amount.Add(static_cast<float>(at) / 2);
      amount.Add(static_cast<float>(-at));
      expect(src, dst, at);
    }
    input.edges.attributes = {time, amount};
    const bool undirected = input.undirected;
    BuildOptions options;
    options.partition.kind = PartitionerKind::kRandom;
    options.partition.partitions = 3;
    options.directions = round % 2 == 0 ? Direction::kBoth : Direction::kIn;
    TempDir dir;
    ASSERT_OK(BuildStore(dir / "g.rz", std::move(input), options));
    input.undirected = undirected;
    auto store = testing::OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    ASSERT_EQ((*graph)->edge_attributes().size(), 2U);
    // The store orders attributes by name.
    ASSERT_EQ((*graph)->edge_attributes()[0].name, "amount");
    ASSERT_EQ((*graph)->edge_attributes()[0].dim, 2U);
    ASSERT_EQ((*graph)->edge_attributes()[1].first_value, 2U);
    WriteBatch batch;
    for (int e = 0; e < 10; ++e) {
      const auto src = static_cast<VertexId>(rng() % 14);
      const auto dst = static_cast<VertexId>(rng() % 14);
      const auto at = static_cast<std::int64_t>(rng() % 100);
      batch.PutEdge(src, dst, {.attributes = {static_cast<double>(at) / 2, -at, at}});
      expect(src, dst, at);
    }
    ASSERT_OK((*graph)->Write(batch));
    WriteBatch wrong;
    wrong.PutEdge(1, 2, {.attributes = {1, 2, 0.5}});
    const auto refused = (*graph)->Write(wrong);
    EXPECT_STATUS(refused, kInvalidArgument);
    EXPECT_NE(refused.error().message().find("'time' is int64, but a float64"), std::string::npos);
    CompactOptions compact{.repartition = round >= 3};
    compact.expire_attribute = "time";
    compact.expire_before = 50;
    if (round == 4) compact.memory_bytes = testing::JustNotHolding(*(*graph)->Snapshot(), compact);
    const JobControl control;
    ASSERT_OK((*graph)->Compact(compact, control));
    std::erase_if(expected, [](const auto& edge) { return std::get<2>(edge) < 50; });

    std::multiset<std::tuple<VertexId, VertexId, std::int64_t>> found;
    const auto id_of = [&](Row row) {
      return std::get<std::int64_t>(*(*graph)->ExternalIdOf(*(*graph)->VertexAt(row)));
    };
    const auto compacted = (*graph)->Snapshot();
    for (std::uint32_t p = 0; p < compacted->partition_count(); ++p) {
      const Adjacency& partition = compacted->partition(p);
      std::vector<std::int64_t> times(partition.edge_count());
      std::vector<float> amounts(2 * partition.edge_count());
      const auto read = [&](const char* name, std::span<std::byte> out) {
        const auto array = compacted->store().OpenArray(EdgeArrayName(name, p));
        ASSERT_OK(array);
        ASSERT_OK((*array)->ReadRows(0, partition.edge_count(), out));
      };
      read("time", std::as_writable_bytes(std::span(times)));
      read("amount", std::as_writable_bytes(std::span(amounts)));
      const Direction walked = partition.has(Direction::kOut) ? Direction::kOut : Direction::kIn;
      for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
        const auto local = static_cast<LocalId>(v);
        const auto list = partition.Neighbors(local, walked);
        for (std::size_t i = 0; i < list.neighbors.size(); ++i) {
          const std::uint64_t edge = list.first + i;
          EXPECT_EQ(amounts[2 * edge], static_cast<float>(times[edge]) / 2);
          EXPECT_EQ(amounts[2 * edge + 1], static_cast<float>(-times[edge]));
          VertexId src = id_of(partition.RowOf(local));
          VertexId dst = id_of(partition.RowOf(list.neighbors[i]));
          if (walked == Direction::kIn) std::swap(src, dst);
          found.insert({src, dst, times[edge]});
        }
      }
    }
    EXPECT_EQ(found, expected);
    ExpectVerifies(dir / "g.rz");
  }
}

// A weighted graph without edges still accepts weights, after any kind of compaction.
TEST(CompactionTest, AGraphWithoutEdgesStaysWeighted) {
  const JobControl control;
  for (const bool repartition : {false, true}) {
    for (const bool spilled : {false, true}) {
      SCOPED_TRACE(::testing::Message()
                   << "repartition " << repartition << ", spilled " << spilled);
      TempDir dir;
      GraphInput input;
      input.vertex_count = 300;
      input.vertex_type_names = {"v"};
      input.edge_type_names = {"e"};
      input.edges.src = {0, 1};
      input.edges.dst = {1, 2};
      input.edges.weight = {0.5F, 2.0F};
      ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(input), {}));
      const auto store = testing::OpenStore(dir / "g.rz", Store::Mode::kWrite);
      ASSERT_OK(store);
      const auto graph = Graph::Open(**store);
      ASSERT_OK(graph);
      WriteBatch none_left;
      none_left.DeleteEdge(0, 1);
      none_left.DeleteEdge(1, 2);
      ASSERT_OK((*graph)->Write(none_left));
      CompactOptions options;
      options.repartition = repartition;
      options.partition.partitions = 2;
      if (spilled) options.memory_bytes = testing::JustNotHolding(*(*graph)->Snapshot(), options);
      ASSERT_OK((*graph)->Compact(options, control));
      WriteBatch weighted;
      weighted.PutEdge(2, 0, {.weight = 0.25F});
      ASSERT_OK((*graph)->Write(weighted));
      const auto neighbors = (*graph)->Neighbors(2, Direction::kOut);
      ASSERT_OK(neighbors);
      ASSERT_EQ(neighbors->size(), 1U);
      EXPECT_EQ(neighbors->front().weight, 0.25F);
    }
  }
}

TEST(CompactionTest, ASmallDeltaIsLeftAlone) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Updated updated(rng, dir / "g.rz");
  const JobControl control;
  const auto result = updated.graph->Compact({.min_delta = 1e6}, control);
  ASSERT_OK(result);
  EXPECT_FALSE(result->compacted);
  EXPECT_EQ(result->generation, 1U);
  EXPECT_STATUS(updated.graph->Compact({.expire_attribute = "time"}, control), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
