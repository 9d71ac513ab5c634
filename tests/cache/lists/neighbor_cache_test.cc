#include "cache/lists/neighbor_cache.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <random>

#include "cache/feed/row_degrees.h"
#include "cache/lists/direct_neighbors.h"
#include "index/base/memory_sink.h"
#include "index/generation/graph_builder.h"
#include "index/sample/compressed_neighbors.h"
#include "index/topology/adjacency.h"
#include "rhizome/sampler.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"
#include "testing/testing.h"

// Tests of neighbour lists on disk and of NeighborCache, which keeps the most useful lists in
// memory: all sources give the same rows and samples, lists are chosen by their ratio of benefit to
// size, and failed reads or damage are reported.

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::GraphModel;
using ::testing::HasSubstr;
using testing::RandomGraph;
using testing::TempDir;

/// A store, and its graph opened with lists in memory and with lists on disk.
struct Graphs {
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> memory;
  std::unique_ptr<GraphSnapshot> direct;
};

Graphs OpenBoth(const Path& path) {
  Graphs graphs;
  auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kRead);
  EXPECT_OK(store);
  graphs.store = *std::move(store);
  auto memory = Graph::Open(std::as_const(*graphs.store));
  EXPECT_OK(memory);
  graphs.memory = *std::move(memory);
  auto direct = Graph::Open(std::as_const(*graphs.store), {.topology = TopologyPlace::kDirect});
  EXPECT_OK(direct);
  graphs.direct = *std::move(direct);
  return graphs;
}

/// Returns every entry of every list of a direction, shuffled, some of them twice.
std::vector<EntryRef> AllEntries(const GraphSnapshot& graph, Direction direction,
                                 std::mt19937_64& rng) {
  std::vector<EntryRef> entries;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    for (LocalId v = 0; v < partition.vertex_count(); ++v) {
      const Adjacency::Range list = partition.Entries(v, direction);
      for (std::uint64_t i = 0; i < list.count; ++i) {
        for (std::uint64_t copies = rng() % 3; copies > 0; --copies)
          entries.push_back({list.first + i, v, static_cast<PartitionId>(p)});
      }
    }
  }
  if (rng() % 2 == 0) std::shuffle(entries.begin(), entries.end(), rng);
  return entries;
}

std::vector<Row> Expected(const GraphSnapshot& memory, Direction direction,
                          std::span<const EntryRef> entries) {
  std::vector<Row> rows;
  std::vector<LocalId> scratch;
  for (const EntryRef& entry : entries) {
    const Adjacency& partition = memory.partition(entry.partition);
    const auto list = partition.ReadList(entry.local, direction, scratch);
    rows.push_back(
        partition.RowOf(list[entry.position - partition.Entries(entry.local, direction).first]));
  }
  return rows;
}

std::vector<Row> LookUpAll(const NeighborSource& source, std::span<const EntryRef> entries) {
  std::vector<Row> rows(entries.size(), -1);
  EXPECT_OK(source.LookUp(entries, rows));
  return rows;
}

std::shared_ptr<const NeighborCache> BuildCache(const GraphSnapshot& graph, Direction direction,
                                                std::uint64_t budget_bytes) {
  const JobControl control;
  auto cache =
      NeighborCache::Build(graph, {.direction = direction, .budget_bytes = budget_bytes}, control);
  EXPECT_OK(cache);
  return cache ? *std::move(cache) : nullptr;
}

std::shared_ptr<const DirectNeighbors> OpenDirect(const GraphSnapshot& graph, Direction direction,
                                                  std::shared_ptr<const NeighborCache> cache,
                                                  const DirectNeighborsOptions& options) {
  auto source = DirectNeighbors::Open(graph, direction, std::move(cache), options);
  EXPECT_OK(source);
  return source ? *std::move(source) : nullptr;
}

std::uint64_t TableBytes(const GraphSnapshot& graph) {
  std::uint64_t bytes = 0;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p)
    bytes += graph.partition(p).vertex_count() * 4;
  return bytes;
}

std::uint64_t ListBytes(const GraphSnapshot& graph, Direction direction) {
  std::uint64_t bytes = 0;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p)
    for (LocalId v = 0; v < graph.partition(p).vertex_count(); ++v)
      bytes += graph.partition(p).ExtentOf(v, direction).size_bytes;
  return bytes;
}

class NeighborCacheTest : public ::testing::TestWithParam<TopologyCodec> {
 protected:
  /// Creates a graph of some hundred vertices, large enough that its lists are in many blocks.
  void MakeStore(const testing::RandomGraphOptions& options, std::uint32_t partitions,
                 Direction directions = Direction::kBoth) {
    std::mt19937_64 rng(testing::TestSeed());
    BuildOptions build;
    build.partition.kind = PartitionerKind::kRandom;
    build.partition.partitions = partitions;
    build.directions = directions;
    build.topology_codec = GetParam();
    ASSERT_OK(BuildStore(folder_.path() / "g.rz", RandomGraph(rng, options), build));
    graphs_ = OpenBoth(folder_.path() / "g.rz");
  }

  void ExpectSourcesAgree();
  void ExpectChosenByRatio();

  TempDir folder_;
  Graphs graphs_;
};

// Expects that every way of reading lists gives their true contents.
void NeighborCacheTest::ExpectSourcesAgree() {
  std::mt19937_64 rng(testing::TestSeed());
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    const std::vector<EntryRef> entries = AllEntries(*graphs_.memory, direction, rng);
    const std::vector<Row> expected = Expected(*graphs_.memory, direction, entries);
    const auto resident = ResidentNeighbors(*graphs_.memory, direction);
    ASSERT_OK(resident);
    EXPECT_EQ(LookUpAll(**resident, entries), expected);
    EXPECT_EQ(LookUpAll(CompressedNeighbors(*graphs_.memory, direction), entries), expected);
    for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
      DirectNeighborsOptions options{
          .io = {.maker = maker, .depth = 1 + static_cast<std::uint32_t>(rng() % 32)},
          .gap_bytes = rng() % 20000,
          .max_read_bytes = 4096 + rng() % 30000,
          .staging_bytes = 65536};
      for (const std::uint64_t budget : {0, 5000, 1 << 20}) {
        const auto cache = budget == 0 ? nullptr
                                       : BuildCache(*graphs_.direct, direction,
                                                    TableBytes(*graphs_.direct) + budget);
        const auto source = OpenDirect(*graphs_.direct, direction, cache, options);
        ASSERT_NE(source, nullptr);
        EXPECT_EQ(LookUpAll(*source, entries), expected);
        const ListReads stats = source->stats();
        EXPECT_EQ(stats.entries, entries.size());
        EXPECT_EQ(stats.reads == 0, budget == 1 << 20);
        EXPECT_EQ(stats.cached_entries == 0, budget == 0);
      }
    }
  }
}

TEST_P(NeighborCacheTest, EverySourceGivesTheSameRows) {
  MakeStore({.vertices = 300, .edges = 9000}, 3);
  ExpectSourcesAgree();
}

TEST_P(NeighborCacheTest, EverySourceGivesTheSameRowsOfATypedGraph) {
  MakeStore({.vertices = 300, .edges = 9000, .edge_types = 5}, 3);
  ExpectSourcesAgree();
}

TEST_P(NeighborCacheTest, SamplesAreBitwiseEqual) {
  MakeStore({.vertices = 200, .edges = 5000, .edge_types = 3, .weighted = true}, 4);
  std::vector<VertexId> seeds;
  for (VertexId v = 0; v < 40; ++v) seeds.push_back(v * 3);
  for (const bool replace : {false, true}) {
    SamplerOptions options;
    options.fanouts = {5, 4, kAllNeighbors};
    options.replace = replace;
    const auto sample = [&](const GraphSnapshot& graph,
                            std::shared_ptr<const NeighborSource> source, std::uint32_t threads) {
      options.threads = threads;
      auto sampler = Sampler::Create(graph, options, std::move(source));
      EXPECT_OK(sampler);
      auto drawn = (*sampler)->Sample(seeds, 7);
      EXPECT_OK(drawn);
      return *std::move(drawn);
    };
    const auto resident = ResidentNeighbors(*graphs_.memory, options.direction);
    ASSERT_OK(resident);
    const SampledSubgraph expected = sample(*graphs_.memory, *resident, 1);
    const auto cache =
        BuildCache(*graphs_.direct, options.direction, TableBytes(*graphs_.direct) + 3000);
    const auto disk = OpenDirect(*graphs_.direct, options.direction, cache, {});
    for (const std::uint32_t threads : {1U, 2U}) {
      const SampledSubgraph drawn = sample(*graphs_.direct, disk, threads);
      EXPECT_EQ(drawn.rows, expected.rows);
      EXPECT_EQ(drawn.neighbors, expected.neighbors);
      EXPECT_EQ(drawn.offsets, expected.offsets);
      EXPECT_EQ(drawn.types, expected.types);
      EXPECT_EQ(drawn.weights, expected.weights);
    }
  }
}

TEST_P(NeighborCacheTest, PointLookUpsReadFromDisk) {
  MakeStore({.vertices = 60, .edges = 900, .edge_types = 4, .weighted = true}, 3);
  EXPECT_FALSE(graphs_.direct->partition(0).resident());
  for (VertexId v = 0; v < 60; ++v) {
    for (const Direction direction : {Direction::kOut, Direction::kIn, Direction::kBoth}) {
      const auto expected = graphs_.memory->Neighbors(v, direction);
      const auto found = graphs_.direct->Neighbors(v, direction);
      ASSERT_OK(expected);
      ASSERT_OK(found);
      EXPECT_EQ(*found, *expected);
    }
    EXPECT_EQ(*graphs_.direct->NeighborsOfType(v, Direction::kIn, 2),
              *graphs_.memory->NeighborsOfType(v, Direction::kIn, 2));
  }
}

// A list has the highest ratio if its vertex appears in many lists and the list itself is short.
void NeighborCacheTest::ExpectChosenByRatio() {
  const GraphSnapshot& graph = *graphs_.direct;
  const std::uint64_t budget = TableBytes(graph) + ListBytes(graph, Direction::kIn) / 3;
  const auto cache = BuildCache(graph, Direction::kIn, budget);
  ASSERT_NE(cache, nullptr);
  EXPECT_LE(cache->memory_bytes(), budget);
  EXPECT_GT(cache->list_count(), 0U);
  std::vector<std::uint64_t> appears(120, 0);
  for (VertexId v = 0; v < 120; ++v) {
    const auto neighbors = graphs_.memory->Neighbors(v, Direction::kIn);
    ASSERT_OK(neighbors);
    for (const Neighbor& neighbor : *neighbors)
      ++appears[static_cast<std::size_t>(neighbor.vertex)];
  }
  struct List {
    double ratio;
    std::uint64_t bytes;
  };
  std::vector<List> cached;
  std::vector<List> left;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    for (LocalId v = 0; v < partition.vertex_count(); ++v) {
      if (partition.Entries(v, Direction::kIn).count == 0) continue;
      const auto vertex = static_cast<std::size_t>(*graph.VertexAt(partition.RowOf(v)));
      const double ratio = static_cast<double>(appears[vertex]) /
                           static_cast<double>(partition.GlobalDegree(v, Direction::kIn));
      const std::uint64_t bytes = (partition.ExtentOf(v, Direction::kIn).size_bytes + 3) / 4 * 4;
      (cache->Find(p, v) != nullptr ? cached : left).push_back({ratio, bytes});
    }
  }
  ASSERT_FALSE(left.empty());
  // A list is left out only if it did not fit beside the lists with the same or a higher ratio.
  for (const List& list : left) {
    std::uint64_t bytes = TableBytes(graph) + list.bytes;
    for (const List& other : cached)
      if (other.ratio >= list.ratio) bytes += other.bytes;
    EXPECT_GT(bytes, budget);
  }
}

TEST_P(NeighborCacheTest, ListsAreChosenByTheRatioOfDegreesWithinTheBudget) {
  MakeStore({.vertices = 120, .edges = 3000}, 2);
  ExpectChosenByRatio();
}

// If only one direction is stored, degrees of the other direction are counted by reading all lists.
TEST_P(NeighborCacheTest, RatiosAreTheSameWhereOneDirectionIsStored) {
  MakeStore({.vertices = 120, .edges = 3000}, 2, Direction::kIn);
  ExpectChosenByRatio();
}

TEST_P(NeighborCacheTest, OfTiesTheHubsAreTaken) {
  GraphInput star =
      testing::RandomGraph(*std::make_unique<std::mt19937_64>(1), {.vertices = 400, .edges = 0});
  star.undirected = true;
  for (VertexId v = 1; v < 400; ++v) {
    star.edges.src.push_back(0);
    star.edges.dst.push_back(v);
  }
  BuildOptions build;
  build.topology_codec = GetParam();
  ASSERT_OK(BuildStore(folder_.path() / "star.rz", star, build));
  graphs_ = OpenBoth(folder_.path() / "star.rz");
  const auto cache =
      BuildCache(*graphs_.direct, Direction::kIn, TableBytes(*graphs_.direct) + 399 * 4);
  ASSERT_NE(cache, nullptr);
  const auto hub = graphs_.direct->partition(0).Find(*graphs_.direct->RowOf(0));
  EXPECT_NE(cache->Find(0, *hub), nullptr);
}

TEST_P(NeighborCacheTest, DumpIsLoadedAndDamageIsFound) {
  MakeStore({.vertices = 100, .edges = 2000}, 2);
  const auto built =
      BuildCache(*graphs_.direct, Direction::kIn, TableBytes(*graphs_.direct) + 3000);
  ASSERT_NE(built, nullptr);
  MemorySink sink;
  ASSERT_OK(built->Dump(sink, *graphs_.direct));
  const Path path = folder_.path() / "cache";
  const auto load = [&](const std::vector<std::byte>& bytes, Direction direction) {
    std::ofstream(path, std::ios::binary)  // not synced; syncing takes most of the test's time
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return NeighborCache::Load(FileSystem::Posix(), path, *graphs_.direct, direction);
  };
  const auto loaded = load(sink.bytes(), Direction::kIn);
  ASSERT_OK(loaded);
  EXPECT_EQ((*loaded)->list_count(), built->list_count());
  std::mt19937_64 rng(testing::TestSeed());
  const auto entries = AllEntries(*graphs_.memory, Direction::kIn, rng);
  const auto source = OpenDirect(*graphs_.direct, Direction::kIn, *loaded, {});
  EXPECT_EQ(LookUpAll(*source, entries), Expected(*graphs_.memory, Direction::kIn, entries));

  EXPECT_STATUS(load(sink.bytes(), Direction::kOut), kInvalidArgument);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::byte> damaged = sink.bytes();
    const std::size_t at = rng() % damaged.size();
    damaged[at] ^= static_cast<std::byte>(1U << (rng() % 8));
    const auto refused = load(damaged, Direction::kIn);
    ASSERT_FALSE(refused) << at;
    EXPECT_THAT(refused.error().message(), HasSubstr("cache"));
  }
}

TEST_P(NeighborCacheTest, WrongUseIsRefused) {
  MakeStore({.vertices = 30, .edges = 200}, 2, Direction::kIn);
  const JobControl control;
  EXPECT_STATUS(NeighborCache::Build(*graphs_.memory, {}, control), kInvalidArgument);
  EXPECT_STATUS(NeighborCache::Build(*graphs_.direct, {.direction = Direction::kOut}, control),
                kInvalidArgument);
  EXPECT_STATUS(NeighborCache::Build(*graphs_.direct, {.budget_bytes = 10}, control),
                kInvalidArgument);
  EXPECT_STATUS(DirectNeighbors::Open(*graphs_.memory, Direction::kIn, nullptr, {}),
                kInvalidArgument);
  EXPECT_STATUS(DirectNeighbors::Open(*graphs_.direct, Direction::kOut, nullptr, {}),
                kInvalidArgument);
  EXPECT_STATUS(
      DirectNeighbors::Open(*graphs_.direct, Direction::kIn, nullptr, {.staging_bytes = 4096}),
      kInvalidArgument);
  EXPECT_STATUS(ResidentNeighbors(*graphs_.direct, Direction::kIn), kInvalidArgument);
}

// In each round one read fails, is short, or returns changed bytes. The call returns an error that
// names the file, or the right rows; the next call succeeds.
TEST_P(NeighborCacheTest, FailedReadsAreErrorsAndDoNotStick) {
  MakeStore({.vertices = 300, .edges = 9000}, 2);
  std::mt19937_64 rng(testing::TestSeed());
  const auto entries = AllEntries(*graphs_.memory, Direction::kIn, rng);
  const std::vector<Row> expected = Expected(*graphs_.memory, Direction::kIn, entries);
  enum class Fault { kEio, kShort, kEintr, kFlip };
  for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
    for (const Fault fault : {Fault::kEio, Fault::kShort, Fault::kEintr, Fault::kFlip}) {
      for (int nth = 0; nth < 4; ++nth) {
        std::atomic<int> calls{0};
        std::atomic<bool> armed{true};
        DirectNeighborsOptions options{.gap_bytes = 0, .max_read_bytes = 8192};
        options.io = {.maker = maker, .depth = 4};
        options.io.fault_hook = [&](const ReadRequest& request, std::int64_t outcome) {
          if (!armed || calls++ != nth || outcome < 0) return outcome;
          if (fault == Fault::kEio) return std::int64_t{-EIO};
          if (fault == Fault::kEintr) return std::int64_t{-EINTR};
          if (fault == Fault::kShort) return std::min<std::int64_t>(outcome, 512);
          request.buffer[100] ^= std::byte{4};
          return outcome;
        };
        const auto source = OpenDirect(*graphs_.direct, Direction::kIn, nullptr, options);
        std::vector<Row> rows(entries.size());
        const Status status = source->LookUp(entries, rows);
        const bool happened = calls > nth;  // compressed lists need few reads
        EXPECT_TRUE(happened || nth > 0);
        if (fault == Fault::kEio && happened) {
          EXPECT_STATUS(status, kIoError);
        }
        if (fault == Fault::kFlip && happened) {
          EXPECT_STATUS(status, kCorruption);
        }
        if (status.ok()) {
          EXPECT_EQ(rows, expected);
        } else {
          EXPECT_THAT(status.message(), HasSubstr("part-000"));
          EXPECT_THAT(status.message(), HasSubstr("offset"));
        }
        armed = false;
        EXPECT_EQ(LookUpAll(*source, entries), expected);
      }
    }
  }
}

TEST_P(NeighborCacheTest, DamageOnDiskIsFoundWhenItIsRead) {
  MakeStore({.vertices = 300, .edges = 9000}, 1);
  std::mt19937_64 rng(testing::TestSeed());
  const auto entries = AllEntries(*graphs_.memory, Direction::kOut, rng);
  const Adjacency& partition = graphs_.direct->partition(0);
  const Adjacency::Extent extent = partition.ExtentOf(5, Direction::kOut);
  ASSERT_GT(extent.size_bytes, 0U);
  {
    std::fstream file(partition.file().path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(extent.offset_bytes));
    const auto byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(extent.offset_bytes));
    file.put(byte);
  }
  const auto source = OpenDirect(*graphs_.direct, Direction::kOut, nullptr, {});
  std::vector<Row> rows(entries.size());
  const Status status = source->LookUp(entries, rows);
  EXPECT_STATUS(status, kCorruption);
  EXPECT_THAT(status.message(), HasSubstr("part-0000.adj"));
  const VertexId vertex = *graphs_.direct->VertexAt(partition.RowOf(5));
  EXPECT_STATUS(graphs_.direct->Neighbors(vertex, Direction::kOut), kCorruption);
}

/// Lists of all partitions cannot be opened if only some partitions of the graph are loaded.
TEST_P(NeighborCacheTest, PartitionsThatAreNotLoadedAreNamed) {
  MakeStore({.vertices = 200, .edges = 2000, .weighted = true}, 3);
  const auto part = Graph::Open(std::as_const(*graphs_.store),
                                {.topology = TopologyPlace::kDirect, .partitions = {0, 2}});
  ASSERT_OK(part);
  const NeighborCacheOptions options{.direction = Direction::kOut, .budget_bytes = 1 << 20};
  const Path dump = folder_.path() / "cache";
  for (const Status& status :
       {NeighborCache::Build(**part, options, JobControl()).error(),
        NeighborCache::Load(FileSystem::Posix(), dump, **part, Direction::kOut).error(),
        DirectNeighbors::Open(**part, Direction::kOut, nullptr, {}).error(),
        CheckEdgeWeights(**part)}) {
    EXPECT_STATUS(status, kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("partition 1 is not loaded"));
    EXPECT_THAT(status.message(), HasSubstr("partitions 0, 2 of 3"));
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, NeighborCacheTest,
                         ::testing::Values(TopologyCodec::kNone, TopologyCodec::kEliasFano));

}  // namespace
}  // namespace rhizome
