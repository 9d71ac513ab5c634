#include "rhizome/graph_service.h"

#include <atomic>
#include <charconv>
#include <cstring>
#include <random>
#include <thread>

#include "index/generation/graph_builder.h"
#include "rhizome/chunk_array.h"
#include "rhizome/ingest.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

// Tests of GraphService: its memory budget, warming of its caches, its metrics, and look-ups from
// many threads. All results are compared with a plain graph.

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::RandomGraph;
using testing::TempDir;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGraphServiceVertices = 3000;
constexpr std::uint64_t kDim = 16;

// Vertices whose degrees are far above all others.
constexpr VertexId kHubs[] = {7, 700, 1400};

ArrayInput Array(const std::string& name, ArrayLayout layout, float factor) {
  ArrayInput array;
  array.name = name;
  array.dim = kDim;
  array.chunk_rows = 512;
  array.layout = layout;
  if (layout == ArrayLayout::kChunk) array.codec.kind = CodecKind::kZstd;
  array.read_rows = [factor](std::span<const VertexId> vertices, std::span<std::byte> out) {
    std::vector<float> row(kDim);
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      for (std::uint64_t d = 0; d < kDim; ++d)
        row[d] = factor * static_cast<float>(vertices[i]) + static_cast<float>(d);
      std::memcpy(out.data() + i * kDim * sizeof(float), row.data(), kDim * sizeof(float));
    }
    return Status::Ok();
  };
  return array;
}

void Build(const Path& path, std::mt19937_64& rng) {
  GraphInput input = RandomGraph(rng, {.vertices = kGraphServiceVertices,
                                       .edges = 20000,
                                       .edge_types = 2,
                                       .weighted = rng() % 2 == 0,
                                       .undirected = rng() % 2 == 0});
  for (const VertexId hub : kHubs) {
    for (VertexId v = 0; v < 600; ++v) {
      input.edges.src.push_back(hub);
      input.edges.dst.push_back(v);
      input.edges.type.push_back(0);
      if (!input.edges.weight.empty()) input.edges.weight.push_back(1);
    }
  }
  input.arrays.push_back(Array("by_row", ArrayLayout::kRow, 1));
  input.arrays.push_back(Array("by_chunk", ArrayLayout::kChunk, 2));
  BuildOptions options;
  options.partition.kind = PartitionerKind::kRandom;
  options.partition.partitions = 1 + static_cast<std::uint32_t>(rng() % 3);
  if (rng() % 3 == 0) options.topology_codec = TopologyCodec::kEliasFano;
  ASSERT_OK(BuildStore(path, std::move(input), options));
}

std::unique_ptr<GraphService> OpenService(const Path& path, const ServiceOptions& options) {
  auto service = GraphService::Open(FileSystem::Posix(), path, options);
  EXPECT_OK(service);
  return service ? *std::move(service) : nullptr;
}

std::vector<VertexId> Everyone() {
  std::vector<VertexId> all(kGraphServiceVertices);
  for (std::uint64_t v = 0; v < kGraphServiceVertices; ++v) all[v] = static_cast<VertexId>(v);
  return all;
}

/// Compares every row and neighbour list of the service with a plain graph.
void ExpectSameOfGraphService(const GraphService& service, const Graph& plain) {
  const auto all = Everyone();
  for (const char* name : {"by_row", "by_chunk"}) {
    const auto rows = service.Rows(name);
    ASSERT_OK(rows);
    std::vector<std::byte> found(all.size() * (*rows)->row_bytes());
    std::vector<std::byte> expected(found.size());
    ASSERT_OK((*rows)->Read(all, found));
    for (std::size_t begin = 0; begin < all.size(); begin += 512) {
      const std::size_t count = std::min<std::size_t>(512, all.size() - begin);
      for (std::size_t i = begin; i < begin + count; ++i) {
        float first = 0;
        std::memcpy(&first, found.data() + i * (*rows)->row_bytes(), sizeof(first));
        ASSERT_EQ(first, (name[3] == 'r' ? 1.0F : 2.0F) * static_cast<float>(i));
      }
    }
  }
  NeighborLists found;
  NeighborLists expected;
  ASSERT_OK(LookUpNeighbors(service.graph(), all, Direction::kBoth, found));
  ASSERT_OK(LookUpNeighbors(plain, all, Direction::kBoth, expected));
  EXPECT_EQ(found.offsets, expected.offsets);
  EXPECT_EQ(found.vertices, expected.vertices);
  EXPECT_EQ(found.types, expected.types);
  EXPECT_EQ(found.weights, expected.weights);
}

std::uint64_t LeastNamed(const std::string& message) {
  const std::string mark = "at least ";
  const std::size_t at = message.find(mark);
  std::uint64_t least = 0;
  if (at == std::string::npos) return 0;
  std::from_chars(message.data() + at + mark.size(), message.data() + message.size(), least);
  return least;
}

TEST(GraphServiceTest, ThePartsOfTheBudgetAddUp) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Build(dir / "g.rz", rng);
  const auto store = Store::Open(FileSystem::Posix(), dir / "g.rz", Store::Mode::kRead);
  ASSERT_OK(store);
  for (int draw = 0; draw < 200; ++draw) {
    ServiceOptions options;
    options.memory_budget_bytes = rng() % (rng() % 2 == 0 ? 16 * kMiB : 64 * 1024 * kMiB);
    options.threads = 1 + static_cast<std::uint32_t>(rng() % 8);
    options.mode = rng() % 2 == 0 ? Store::Mode::kRead : Store::Mode::kWrite;
    options.catalog_share = static_cast<double>(rng() % 40) / 100;
    options.delta_share = static_cast<double>(rng() % 50) / 100;
    if (rng() % 2 == 0) options.arrays = {"by_row", "by_chunk"};
    if (rng() % 3 == 0) options.topology = TopologyPlace::kDirect;
    auto plan = PlanMemory(**store, options);
    if (!plan) {
      EXPECT_STATUS(plan, kOutOfMemory);
      const std::string message = plan.error().message();
      for (const char* part : {"catalogue", "written", "read buffers", "external ids", "caches"})
        EXPECT_NE(message.find(part), std::string::npos) << message;
      // The memory size in the message is sufficient.
      const std::uint64_t least = LeastNamed(message);
      ASSERT_GT(least, options.memory_budget_bytes) << message;
      options.memory_budget_bytes = least;
      plan = PlanMemory(**store, options);
      ASSERT_OK(plan);
    }
    EXPECT_EQ(plan->total_bytes(), options.memory_budget_bytes);
    EXPECT_EQ(plan->row_caches.size(), options.arrays.size());
    EXPECT_EQ(plan->list_cache_bytes > 0, plan->topology == TopologyPlace::kDirect);
  }
}

TEST(GraphServiceTest, RefusesWhatMakesNoSense) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Build(dir / "g.rz", rng);
  FileSystem& fs = FileSystem::Posix();
  ServiceOptions options = SmallProfile();
  options.memory_budget_bytes = kMiB;
  const auto tiny = GraphService::Open(fs, dir / "g.rz", options);
  EXPECT_STATUS(tiny, kOutOfMemory);
  options = SmallProfile();
  options.arrays = {"nothing"};
  EXPECT_STATUS(GraphService::Open(fs, dir / "g.rz", options), kNotFound);
  options = SmallProfile();
  options.delta_share = 0.95;
  EXPECT_STATUS(GraphService::Open(fs, dir / "g.rz", options), kInvalidArgument);
  options = SmallProfile();
  options.threads = 0;
  EXPECT_STATUS(GraphService::Open(fs, dir / "g.rz", options), kInvalidArgument);
  const auto service = OpenService(dir / "g.rz", SmallProfile());
  EXPECT_STATUS(service->Rows("by_row"), kNotFound);
}

TEST(GraphServiceTest, EveryProfileServesEveryBudget) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Build(dir / "g.rz", rng);
  const auto plain = testing::OpenStoreGraph(dir / "g.rz");
  ASSERT_OK(plain);
  for (ServiceOptions options : {SmallProfile(), BulkLoadProfile(), ServeProfile()}) {
    options.arrays = {"by_row", "by_chunk"};
    for (const std::uint64_t budget : {options.memory_budget_bytes, std::uint64_t{0}}) {
      options.memory_budget_bytes = budget;
      const auto plan = PlanMemory(*plain->store, options);
      if (!plan) options.memory_budget_bytes = LeastNamed(plan.error().message());
      const auto service = OpenService(dir / "g.rz", options);
      ASSERT_NE(service, nullptr);
      ExpectSameOfGraphService(*service, *plain->graph);
      ExpectSameOfGraphService(*service, *plain->graph);
      std::uint64_t caches = service->memory().list_cache_bytes;
      for (const auto& [array, bytes] : service->memory().row_caches) caches += bytes;
      EXPECT_LE(static_cast<std::uint64_t>(service->metrics().of(Gauge::kCacheBytes)), caches);
      if (HasFailure()) return;
    }
  }
}

/// Looks up all rows and lists, and returns the number of file reads.
std::uint64_t ReadsOfEverything(const GraphService& service, const Graph& plain) {
  const std::uint64_t before = service.metrics().of(Counter::kFileReads);
  ExpectSameOfGraphService(service, plain);
  return service.metrics().of(Counter::kFileReads) - before;
}

TEST(GraphServiceTest, AWarmServiceReadsNothing) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Build(dir / "g.rz", rng);
  const auto plain = testing::OpenStoreGraph(dir / "g.rz");
  ASSERT_OK(plain);
  for (const TopologyPlace place : {TopologyPlace::kMemory, TopologyPlace::kDirect}) {
    ServiceOptions options = ServeProfile();
    options.arrays = {"by_row", "by_chunk"};
    options.topology = place;
    const auto warm = OpenService(dir / "g.rz", options);
    ASSERT_NE(warm, nullptr);
    EXPECT_EQ(ReadsOfEverything(*warm, *plain->graph), 0U);
    const MetricsSnapshot all = warm->metrics();
    EXPECT_EQ(all.of(Counter::kRowCacheMisses), 0U);
    EXPECT_EQ(all.of(Counter::kRowCacheHits), 2 * kGraphServiceVertices);
    EXPECT_EQ(all.of(Counter::kListCacheMisses), 0U);
    EXPECT_EQ(all.of(Counter::kListCacheHits) > 0, place == TopologyPlace::kDirect);
    options.warm = false;
    const auto cold = OpenService(dir / "g.rz", options);
    ASSERT_NE(cold, nullptr);
    EXPECT_GT(ReadsOfEverything(*cold, *plain->graph), 0U);
    EXPECT_EQ(ReadsOfEverything(*cold, *plain->graph), 0U);  // the first pass filled the cache
  }
}

// The hot rows are in memory and the others are not. Reading the others evicts no hot row.
TEST(GraphServiceTest, ASmallCacheIsWarmedWithRowsOfHighDegree) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Build(dir / "g.rz", rng);
  const auto metrics = std::make_shared<Metrics>();
  const auto store =
      Store::Open(FileSystem::Posix(), dir / "g.rz", Store::Mode::kRead, {.metrics = metrics});
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  const auto rows = RowLookup::Open(**graph, "by_row", {.memory_bytes = 80000});
  ASSERT_OK(rows);
  ASSERT_OK((*rows)->Warm());
  const std::vector<VertexId> hubs(std::begin(kHubs), std::end(kHubs));
  std::vector<std::byte> out(hubs.size() * (*rows)->row_bytes());
  ASSERT_OK((*rows)->Read(hubs, out));
  EXPECT_EQ(metrics->Snapshot().of(Counter::kRowCacheHits), hubs.size());
  EXPECT_EQ(metrics->Snapshot().of(Counter::kRowCacheEvictions), 0U);
  std::vector<std::byte> everything(kGraphServiceVertices * (*rows)->row_bytes());
  ASSERT_OK((*rows)->Read(Everyone(), everything));
  EXPECT_GT(metrics->Snapshot().of(Counter::kRowCacheMisses), 0U);
  EXPECT_GT(metrics->Snapshot().of(Counter::kRowCacheEvictions), 0U);
}

TEST(GraphServiceTest, AWarmUpStopsWhenItIsToldTo) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Build(dir / "g.rz", rng);
  JobControl control;
  control.Cancel();
  ServiceOptions options = ServeProfile();
  options.arrays = {"by_row"};
  options.topology = TopologyPlace::kDirect;
  options.warm_limits = {.control = &control};
  EXPECT_STATUS(GraphService::Open(FileSystem::Posix(), dir / "g.rz", options), kInterrupted);
  options.warm_limits = {.deadline = std::chrono::steady_clock::now()};
  const auto late = OpenService(dir / "g.rz", options);  // opens, but is cold
  ASSERT_NE(late, nullptr);
  EXPECT_STATUS(late->Warm(options.warm_limits), kInterrupted);
  std::vector<JobControl::Progress> reports;
  const JobControl watched([&](const JobControl::Progress& report) { reports.push_back(report); });
  ASSERT_OK(late->Warm({.control = &watched}));
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back().done, reports.back().total);
  for (const auto& report : reports) EXPECT_LE(report.done, report.total);
}

TEST(GraphServiceTest, CountsAndSaysWhatHappens) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  Build(dir / "g.rz", rng);
  std::vector<std::string> lines;
  MetricsSnapshot last;
  {
    ServiceOptions options = BulkLoadProfile();
    options.arrays = {"by_row"};
    options.log = [&](const LogLine& line) { lines.push_back(line.message); };
    options.metrics = [&](const MetricsSnapshot& all) { last = all; };
    options.metrics_period = std::chrono::hours(1);  // so they are reported only at the end
    const auto service = OpenService(dir / "g.rz", options);
    ASSERT_NE(service, nullptr);
    WriteBatch batch;
    batch.PutEdge(1, 2, {.type = service->graph().edge_types()[0]});
    batch.PutEdge(2, 900000);
    ASSERT_OK(service->graph().Write(batch));
    WriteBatch bad;
    bad.PutEdge(1, 2, {.type = "unheard of"});
    EXPECT_STATUS(service->graph().Write(bad), kInvalidArgument);
    EXPECT_EQ(service->metrics().of(Gauge::kDeltaCommits), 1);
    EXPECT_EQ(service->metrics().of(Gauge::kPinnedGenerations), 1);
    {
      const auto old = service->graph().Snapshot();
      const JobControl control;
      ASSERT_OK(service->graph().Compact({}, control));
      EXPECT_EQ(service->metrics().of(Gauge::kPinnedGenerations), 2);
    }
    EXPECT_EQ(service->metrics().of(Gauge::kDeltaCommits), 0);
    EXPECT_EQ(service->metrics().of(Gauge::kGeneration), 2);
    const std::string text = service->MetricsAsText();
    EXPECT_NE(text.find("rhizome_compactions_total{store=\""), std::string::npos);
  }
  EXPECT_EQ(last.of(Counter::kWrites), 1U);
  EXPECT_EQ(last.of(Counter::kWriteOperations), 2U);
  EXPECT_EQ(last.of(Counter::kGroupCommits), 1U);
  EXPECT_GT(last.of(Counter::kWriteBytes), 0U);
  EXPECT_GT(last.of(Counter::kFileWriteBytes), 0U);
  EXPECT_EQ(last.of(Counter::kCompactions), 1U);
  EXPECT_EQ(last.of(Counter::kCompactedCommits), 1U);
  EXPECT_EQ(last.of(Timer::kWrite).count(), 2U);
  EXPECT_EQ(last.of(Timer::kCompaction).count(), 1U);
  EXPECT_EQ(last.of(StatusCode::kInvalidArgument), 1U);
  EXPECT_EQ(last.of(Gauge::kVertices), static_cast<std::int64_t>(kGraphServiceVertices + 1));
  const auto said = [&](const std::string& message) {
    return std::find(lines.begin(), lines.end(), message) != lines.end();
  };
  EXPECT_TRUE(said("opened"));
  EXPECT_TRUE(said("compaction begins"));
  EXPECT_TRUE(said("compacted"));
}

// The caches are small, so that blocks are loaded and evicted all the time, also for the thread
// sanitizer.
TEST(GraphServiceTest, ManyThreadsLookUpThroughSmallCaches) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 rng(seed);
  TempDir dir;
  Build(dir / "g.rz", rng);
  const auto store = Store::Open(FileSystem::Posix(), dir / "g.rz", Store::Mode::kRead,
                                 {.metrics = std::make_shared<Metrics>()});
  ASSERT_OK(store);
  const auto graph =
      Graph::Open(**store, {.topology = TopologyPlace::kDirect, .list_cache_bytes = 40000});
  ASSERT_OK(graph);
  const auto by_row = RowLookup::Open(**graph, "by_row", {.memory_bytes = 60000});
  const auto by_chunk = RowLookup::Open(**graph, "by_chunk", {.memory_bytes = 60000});
  ASSERT_OK(by_row);
  ASSERT_OK(by_chunk);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 own(seed + t);
      std::vector<VertexId> vertices(4);
      std::vector<float> out(vertices.size() * kDim);
      NeighborLists lists;
      for (int i = 0; i < 60; ++i) {
        for (VertexId& v : vertices)
          v = static_cast<VertexId>(
              std::min(own() % kGraphServiceVertices, own() % kGraphServiceVertices));
        const bool rows = i % 2 == 0;
        const auto bytes = std::as_writable_bytes(std::span(out));
        if (!(rows ? **by_row : **by_chunk).Read(vertices, bytes).ok()) ++wrong;
        for (std::size_t k = 0; k < vertices.size(); ++k)
          if (out[k * kDim] != (rows ? 1.0F : 2.0F) * static_cast<float>(vertices[k])) ++wrong;
        if (!LookUpNeighbors(**graph, vertices, Direction::kOut, lists).ok()) ++wrong;
        for (std::size_t k = 0; k < vertices.size(); ++k)
          if (lists.offsets[k + 1] - lists.offsets[k] !=
              *(*graph)->Degree(vertices[k], Direction::kOut))
            ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// The cache's blocks are parts of the read unit: a chunk of any number of rows, or an inner chunk
// of a shard.
TEST(GraphServiceTest, RowsComeFromChunksAndShardsOfAnyShape) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  GraphInput input = RandomGraph(rng, {.vertices = kGraphServiceVertices, .edges = 4000});
  constexpr std::pair<std::uint64_t, std::uint64_t> kShapes[] = {
      {100, 0}, {100, 10}, {128, 16}, {7, 7}, {1000, 250}, {0, kChosenInnerRows}};
  const auto name_of = [](std::size_t shape) { return "shape" + std::to_string(shape); };
  for (std::size_t i = 0; i < std::size(kShapes); ++i) {
    input.arrays.push_back(Array(name_of(i), ArrayLayout::kChunk, 2));
    input.arrays.back().chunk_rows = kShapes[i].first;
    input.arrays.back().inner_rows = kShapes[i].second;
  }
  ASSERT_OK(BuildStore(dir / "g.rz", std::move(input), {}));
  const auto store = Store::Open(FileSystem::Posix(), dir / "g.rz", Store::Mode::kRead,
                                 {.metrics = std::make_shared<Metrics>()});
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store, {});
  ASSERT_OK(graph);
  for (std::size_t i = 0; i < std::size(kShapes); ++i) {
    SCOPED_TRACE(name_of(i));
    const auto rows = RowLookup::Open(**graph, name_of(i), {.memory_bytes = 1 + rng() % 400000});
    ASSERT_OK(rows);
    if (rng() % 2 == 0) ASSERT_OK((*rows)->Warm());
    std::vector<VertexId> vertices(500);
    for (VertexId& v : vertices) v = static_cast<VertexId>(rng() % kGraphServiceVertices);
    std::vector<float> out(vertices.size() * kDim);
    ASSERT_OK((*rows)->Read(vertices, std::as_writable_bytes(std::span(out))));
    for (std::size_t k = 0; k < vertices.size(); ++k)
      ASSERT_EQ(out[k * kDim + 3], 2.0F * static_cast<float>(vertices[k]) + 3.0F);
  }
}

}  // namespace
}  // namespace rhizome
