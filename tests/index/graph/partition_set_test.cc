#include <algorithm>
#include <random>
#include <string>

#include "index/generation/graph_builder.h"
#include "index/graph/edges_by_id.h"
#include "index/graph/graph_memory.h"
#include "index/sample/compressed_neighbors.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::RandomGraph;
using testing::TempDir;
using testing::UpdateModel;

constexpr std::uint32_t kPartitions = 4;
constexpr std::uint32_t kSubsets = 1 << kPartitions;

/// Returns, for each vertex, its owner and the partitions with an edge of it, by a scan of all
/// partitions.
std::vector<std::uint32_t> HoldersOf(const GraphSnapshot& whole) {
  std::vector<std::uint32_t> holders(whole.vertex_count(), 0);
  for (std::uint32_t p = 0; p < whole.partition_count(); ++p) {
    const Adjacency& partition = whole.partition(p);
    for (std::uint64_t local = 0; local < partition.vertex_count(); ++local) {
      const Row row = partition.RowOf(static_cast<LocalId>(local));
      holders[static_cast<std::size_t>(*whole.VertexAt(row))] |= 1u << p;
    }
  }
  return holders;
}

class PartitionSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GraphInput input = RandomGraph(rng_, {.edge_types = 1 + static_cast<std::uint32_t>(rng_() % 3),
                                          .weighted = rng_() % 2 == 0,
                                          .undirected = rng_() % 2 == 0});
    UpdateModel::AddRows(input);
    BuildOptions options;
    options.partition.kind = rng_() % 2 == 0 ? PartitionerKind::kRandom : PartitionerKind::kRefined;
    options.partition.partitions = kPartitions;
    ASSERT_OK(BuildStore(dir_ / "g.rz", std::move(input), options));
    auto store = Store::Open(FileSystem::Posix(), dir_ / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    store_ = *std::move(store);
    whole_ = OpenSet(0, TopologyPlace::kMemory);
    ASSERT_NE(whole_, nullptr);
    holders_ = HoldersOf(*whole_);
  }

  GraphOptions OptionsOf(std::uint32_t set, TopologyPlace place) {
    GraphOptions options{.topology = place, .list_cache_bytes = rng_() % 2 * 100000};
    for (std::uint32_t p = 0; p < kPartitions; ++p)
      if ((set >> p & 1) != 0) options.partitions.push_back(static_cast<PartitionId>(p));
    std::shuffle(options.partitions.begin(), options.partitions.end(), rng_);
    return options;
  }
  std::unique_ptr<GraphSnapshot> OpenSet(std::uint32_t set, TopologyPlace place) {
    auto graph = Graph::Open(std::as_const(*store_), OptionsOf(set, place));
    EXPECT_OK(graph);
    return graph ? *std::move(graph) : nullptr;
  }

  /// Expects kInvalidArgument with the name of a partition that is in `needed` but not in `set`.
  void ExpectNames(const Status& status, std::uint32_t set, std::uint32_t needed) {
    ASSERT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    std::uint32_t named = 0;
    for (std::uint32_t p = 0; p < kPartitions; ++p)
      if (status.message().find("partition " + std::to_string(p) + " is not loaded") !=
          std::string::npos)
        named |= 1u << p;
    EXPECT_NE(named & needed & ~set, 0u) << status.ToString();
  }

  /// Checks all lists of each vertex.
  void ExpectListsOf(const GraphSnapshot& graph, std::uint32_t set) {
    for (VertexId v = 0; static_cast<std::uint64_t>(v) < whole_->vertex_count(); ++v) {
      const std::uint32_t needed = holders_[static_cast<std::size_t>(v)];
      const bool here = (needed & ~set) == 0;
      EXPECT_EQ(*graph.TypeOf(v), *whole_->TypeOf(v));
      EXPECT_EQ(*graph.ExternalIdOf(v), *whole_->ExternalIdOf(v));
      for (const Direction direction : {Direction::kOut, Direction::kIn, Direction::kBoth}) {
        const auto list = graph.Neighbors(v, direction);
        NeighborLists batch, expected_batch;
        const Status looked = LookUpNeighbors(graph, std::span(&v, 1), direction, batch);
        if (!here) {
          ASSERT_FALSE(list);
          ExpectNames(list.error(), set, needed);
          ExpectNames(looked, set, needed);
          continue;
        }
        ASSERT_OK(list);
        EXPECT_EQ(*list, *whole_->Neighbors(v, direction));
        ASSERT_OK(looked);
        ASSERT_OK(LookUpNeighbors(*whole_, std::span(&v, 1), direction, expected_batch));
        EXPECT_EQ(batch.vertices, expected_batch.vertices);
        EXPECT_EQ(batch.types, expected_batch.types);
        EXPECT_EQ(batch.weights, expected_batch.weights);
        EXPECT_EQ(*graph.Degree(v, direction), *whole_->Degree(v, direction));
      }
    }
  }

  /// Only the owner of a vertex knows its degree, wherever its edges are.
  void ExpectDegrees(const GraphSnapshot& graph, std::uint32_t set) {
    for (VertexId v = 0; static_cast<std::uint64_t>(v) < whole_->vertex_count(); ++v) {
      const auto degree = graph.Degree(v, Direction::kOut);
      const std::uint32_t owner = 1u << OwnerOf(*whole_->RowOf(v));
      if ((owner & set) != 0) {
        ASSERT_OK(degree);
        EXPECT_EQ(*degree, *whole_->Degree(v, Direction::kOut));
      } else {
        ASSERT_FALSE(degree);
        ExpectNames(degree.error(), set, owner);
      }
    }
  }
  std::uint32_t OwnerOf(Row row) {
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      const auto local = whole_->partition(p).Find(row);
      if (local && *local < whole_->partition(p).owned_count()) return p;
    }
    ADD_FAILURE() << "row " << row << " has no owner";
    return 0;
  }

  void ExpectEdges(const GraphSnapshot& graph, std::uint32_t set) {
    const EdgeNumbering numbers(*whole_), of_set(graph);
    ASSERT_EQ(numbers.generation_edges(), of_set.generation_edges());
    for (std::int64_t e = 0; e < static_cast<std::int64_t>(numbers.generation_edges()); e += 7) {
      const EdgeId edge = *numbers.At(e);
      ASSERT_EQ(*of_set.At(e), edge);
      const bool here = (set >> edge.partition & 1) != 0;
      std::int64_t type = 0, expected = 0;
      const auto of_edge = graph.TypeOfEdge(edge);
      const Status read = ReadEdgeRows(graph, "type", std::span(&e, 1),
                                       std::as_writable_bytes(std::span(&type, 1)));
      if (!here) {
        ASSERT_FALSE(of_edge);
        ExpectNames(of_edge.error(), set, 1u << edge.partition);
        ExpectNames(read, set, 1u << edge.partition);
        continue;
      }
      ASSERT_OK(read);
      ASSERT_OK(ReadEdgeRows(*whole_, "type", std::span(&e, 1),
                             std::as_writable_bytes(std::span(&expected, 1))));
      EXPECT_EQ(type, expected);
      EXPECT_EQ(*of_edge, *whole_->TypeOfEdge(edge));
    }
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      EXPECT_EQ(graph.is_loaded(p), (set >> p & 1) != 0);
      EXPECT_EQ(*CountEdgesById(graph, p), *CountEdgesById(*whole_, p));
      const Status scanned =
          ScanEdgesById(graph, p, [](VertexId, VertexId, TypeId) { return Status::Ok(); });
      if (graph.is_loaded(p)) {
        EXPECT_OK(scanned);
      } else {
        ExpectNames(scanned, set, 1u << p);
      }
    }
  }

  /// Operations that may need any list require all partitions, or fail at the start.
  void ExpectRefusals(const GraphSnapshot& graph, std::uint32_t set) {
    const std::uint32_t all = kSubsets - 1;
    const auto expect = [&](const auto& result) {
      ASSERT_FALSE(result);
      ExpectNames(result.error(), set, all);
    };
    expect(Sampler::Create(graph, {.fanouts = {2}}));
    expect(EdgeScan::Open(graph));
    expect(ResidentNeighbors(graph, Direction::kOut));
    expect(LoadEdgeTimes(graph, "none"));
    expect(LoadVertexTimes(graph, "none", Direction::kOut));
    EXPECT_EQ(*graph.CountEdges(), *whole_->CountEdges());  // the manifest has the number
    EXPECT_OK(WarmNeighbors(graph, Direction::kBoth, {}));
    EXPECT_LT(*HeldByGraph(graph), *HeldByGraph(*OpenSet(0, TopologyPlace::kMemory)));
  }

  std::mt19937_64 rng_{testing::TestSeed()};
  TempDir dir_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<GraphSnapshot> whole_;
  std::vector<std::uint32_t> holders_;
};

TEST_F(PartitionSetTest, EachSubsetAnswersForWhatLiesInItAndRefusesTheRest) {
  for (std::uint32_t set = 1; set < kSubsets; ++set) {
    const auto graph =
        OpenSet(set, rng_() % 2 == 0 ? TopologyPlace::kMemory : TopologyPlace::kDirect);
    ASSERT_NE(graph, nullptr);
    ExpectListsOf(*graph, set);
    ExpectDegrees(*graph, set);
    ExpectEdges(*graph, set);
    if (set != kSubsets - 1) ExpectRefusals(*graph, set);
  }
}

TEST_F(PartitionSetTest, RowsAreReadWhereverTheirEdgesAre) {
  const auto graph =
      OpenSet(1 + static_cast<std::uint32_t>(rng_() % (kSubsets - 2)), TopologyPlace::kMemory);
  ASSERT_NE(graph, nullptr);
  std::vector<VertexId> vertices(whole_->vertex_count());
  for (std::size_t v = 0; v < vertices.size(); ++v) vertices[v] = static_cast<VertexId>(v);
  const auto rows = RowLookup::Open(*graph, "feat", {.memory_bytes = 1 << 16});
  ASSERT_OK(rows);
  std::vector<std::byte> found(vertices.size() * (*rows)->row_bytes()), expected(found.size());
  ASSERT_OK(graph->ReadRows("feat", vertices, found));
  ASSERT_OK(whole_->ReadRows("feat", vertices, expected));
  EXPECT_EQ(found, expected);
  ASSERT_OK((*rows)->Read(vertices, found));
  EXPECT_EQ(found, expected);
}

TEST_F(PartitionSetTest, AGraphWithASetIsRefreshedButNotWritten) {
  const auto set = 1 + static_cast<std::uint32_t>(rng_() % (kSubsets - 2));
  auto part = Graph::Open(*store_, OptionsOf(set, TopologyPlace::kMemory));
  ASSERT_OK(part);
  WriteBatch batch;
  const VertexId a = static_cast<VertexId>(rng_() % whole_->vertex_count());
  const VertexId b = static_cast<VertexId>(rng_() % whole_->vertex_count());
  batch.PutEdge(*whole_->ExternalIdOf(a), *whole_->ExternalIdOf(b));
  const auto written = (*part)->Write(batch);
  ASSERT_FALSE(written);
  ExpectNames(written.error(), set, kSubsets - 1);
  const auto compacted = (*part)->Compact({}, JobControl());
  ASSERT_FALSE(compacted);
  ExpectNames(compacted.error(), set, kSubsets - 1);
  part->reset();

  auto writer = Graph::Open(*store_);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->Write(batch));
  whole_ = OpenSet(0, TopologyPlace::kMemory);
  const auto graph = OpenSet(set, TopologyPlace::kMemory);
  ASSERT_NE(graph, nullptr);
  ExpectListsOf(*graph, set);
  const auto edges = graph->CountEdges();
  ASSERT_FALSE(edges);
  ExpectNames(edges.error(), set, kSubsets - 1);
}

TEST_F(PartitionSetTest, APartitionThatTheStoreLacksIsNamed) {
  const auto graph =
      Graph::Open(std::as_const(*store_), {.partitions = {0, PartitionId{kPartitions}}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(graph.error().message().find("no partition 4"), std::string::npos)
      << graph.error().ToString();
}

}  // namespace
}  // namespace rhizome
