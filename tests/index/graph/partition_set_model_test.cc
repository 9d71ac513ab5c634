#include <filesystem>

#include "index/delta/graph_parts.h"
#include "index/graph/edges_by_id.h"
#include "index/graph/graph_memory.h"
#include "index/partition_sets.h"
#include "index/topology/adjacency.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/block_cache.h"
#include "rhizome/graph_lookup.h"

// Compares the answers of a graph with some of its partitions with a list of all edges of the
// input.

namespace rhizome {
namespace {

using testing::Covers;
using testing::ExpectNotLoaded;
using testing::GraphModel;
using testing::PartitionMarks;

constexpr Direction kEachDirection[] = {Direction::kOut, Direction::kIn, Direction::kBoth};

class PartitionSetModelTest : public testing::PartitionSets {
 protected:
  void ExpectListsOf(const GraphSnapshot& graph, const PartitionMarks& set) const {
    const GraphModel model(input_);
    for (VertexId v = 0; v < static_cast<VertexId>(model.vertex_count()); ++v) {
      for (const Direction direction : kEachDirection) {
        if (!whole_->partition(0).has(direction)) {
          EXPECT_STATUS(graph.Neighbors(v, direction), kInvalidArgument);
          EXPECT_STATUS(graph.Degree(v, direction), kInvalidArgument);
          continue;
        }
        ExpectList(graph, set, model, v, direction);
        ExpectDegree(graph, set, model, v, direction);
      }
    }
  }

  /// Checks the whole list, and the list of each edge type.
  void ExpectList(const GraphSnapshot& graph, const PartitionMarks& set, const GraphModel& model,
                  VertexId v, Direction direction) const {
    const PartitionMarks& needed = holders_[static_cast<std::size_t>(v)];
    const auto expect = [&](const Result<std::vector<Neighbor>>& list, std::optional<TypeId> type) {
      if (!Covers(set, needed)) {
        ASSERT_FALSE(list);
        return ExpectNotLoaded(list.error(), set, needed);
      }
      ASSERT_OK(list);
      EXPECT_EQ(*list, model.Neighbors(v, direction, type));
    };
    expect(graph.Neighbors(v, direction), std::nullopt);
    for (std::size_t type = 0; type < input_.edge_type_names.size(); ++type)
      expect(graph.NeighborsOfType(v, direction, static_cast<TypeId>(type)),
             static_cast<TypeId>(type));
  }

  /// Only the owner of a vertex knows its degree, wherever its edges are.
  void ExpectDegree(const GraphSnapshot& graph, const PartitionMarks& set, const GraphModel& model,
                    VertexId v, Direction direction) const {
    const auto degree = graph.Degree(v, direction);
    if (!set[OwnerOf(v)]) {
      ASSERT_FALSE(degree);
      return ExpectNotLoaded(degree.error(), set, OnlyOwnerOf(v));
    }
    ASSERT_OK(degree);
    EXPECT_EQ(*degree, model.Neighbors(v, direction).size());
  }

  template <typename T>
  Result<T> ValueOf(const GraphSnapshot& graph, std::string_view column, std::int64_t edge) const {
    T value{};
    RHIZOME_RETURN_IF_ERROR(ReadEdgeRows(graph, column, std::span(&edge, 1),
                                         std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }

  /// Checks the values of an edge that are in memory: its type and its weight.
  void ExpectValues(const GraphSnapshot& graph, const PartitionMarks& set, std::size_t partition,
                    std::int64_t edge, std::size_t eid) const {
    const auto type = ValueOf<std::int64_t>(graph, "type", edge);
    const bool weighted = !input_.edges.weight.empty();
    const auto weight = weighted ? ValueOf<float>(graph, "weight", edge) : Result<float>(1.0F);
    if (!set[partition]) {
      PartitionMarks needed(set.size(), false);
      needed[partition] = true;
      ASSERT_FALSE(type);
      ExpectNotLoaded(type.error(), set, needed);
      if (!weighted) return;
      ASSERT_FALSE(weight);
      return ExpectNotLoaded(weight.error(), set, needed);
    }
    ASSERT_OK(type);
    EXPECT_EQ(*type, input_.edges.type.empty() ? 0 : input_.edges.type[eid]);
    ASSERT_OK(weight);
    EXPECT_EQ(*weight, weighted ? input_.edges.weight[eid] : 1.0F);
  }

  /// The size of a partition's file, and the part of it that consists of lists.
  struct FileBytes {
    std::uint64_t all = 0;
    std::uint64_t lists = 0;
  };
  FileBytes BytesOf(std::uint32_t p) const {
    const Adjacency& partition = whole_->partition(p);
    FileBytes bytes{.all =
                        std::filesystem::file_size(store_->GenerationFolder() / PartitionPath(p))};
    for (const Direction direction : {Direction::kOut, Direction::kIn}) {
      if (!partition.has(direction) || (partition.symmetric() && direction == Direction::kIn))
        continue;
      for (std::uint64_t v = 0; v < partition.vertex_count(); ++v)
        bytes.lists += partition.ExtentOf(static_cast<LocalId>(v), direction).size_bytes;
    }
    return bytes;
  }
};

TEST_F(PartitionSetModelTest, ListsAndDegreesAreThoseOfAllEdges) {
  for (int round = 0; round < kRounds; ++round) {
    Make(1 + rng_() % 40, rng_() % 200);
    for (int i = 0; i < 4; ++i) {
      const PartitionMarks set = DrawSet();
      const auto graph = OpenSet(*store_, set, DrawPlace(), rng_() % 2 * 100000);
      ASSERT_NE(graph, nullptr);
      ExpectListsOf(*graph, set);
    }
    if (HasFailure()) return;
  }
}

TEST_F(PartitionSetModelTest, AttributesOfAllEdgesAreReadTypesAndWeightsOfThoseThatAreLoaded) {
  for (int round = 0; round < kRounds; ++round) {
    Make(1 + rng_() % 40, 1 + rng_() % 100);
    const PartitionMarks set = DrawSet();
    const auto graph = OpenSet(*store_, set, DrawPlace());
    ASSERT_NE(graph, nullptr);
    std::vector<std::uint64_t> seen(input_.edges.size(), 0);
    std::int64_t edge = 0;
    for (std::uint32_t p = 0; p < set.size(); ++p) {
      const std::int64_t first = edge;
      for (std::uint64_t i = 0; i < *CountEdgesById(*graph, p); ++i, ++edge) {
        const auto eid = ValueOf<std::int64_t>(*graph, "eid", edge);
        ASSERT_OK(eid);
        ++seen.at(static_cast<std::size_t>(*eid));
        ExpectValues(*graph, set, p, edge, static_cast<std::size_t>(*eid));
      }
      edge = first;
      const auto visit = [&](VertexId src, VertexId dst, TypeId) {
        const auto eid = ValueOf<std::int64_t>(*graph, "eid", edge++);
        if (!eid) return eid.error();
        const auto e = static_cast<std::size_t>(*eid);
        const bool same = src == input_.edges.src[e] && dst == input_.edges.dst[e];
        const bool turned = src == input_.edges.dst[e] && dst == input_.edges.src[e];
        EXPECT_TRUE(same || (input_.undirected && turned)) << src << " " << dst << " " << e;
        return Status::Ok();
      };
      const Status scanned = ScanEdgesById(*graph, p, visit);
      EXPECT_EQ(scanned.ok(), set[p]) << scanned.ToString();
      edge = first + static_cast<std::int64_t>(*CountEdgesById(*graph, p));
    }
    for (std::size_t e = 0; e < seen.size(); ++e) {
      const bool twice = input_.undirected && input_.edges.src[e] != input_.edges.dst[e];
      EXPECT_EQ(seen[e], twice ? 2u : 1u) << e;
    }
    if (HasFailure()) return;
  }
}

TEST_F(PartitionSetModelTest, MemoryIsCountedOfWhatIsLoaded) {
  for (int round = 0; round < kRounds; ++round) {
    Make(200, 3000);
    const PartitionMarks set = DrawSet();
    const std::uint64_t always = OrderAndIdBytes(store_->manifest());
    std::uint64_t all = 0, loaded = 0, lists = 0, blocks = 0;
    for (std::uint32_t p = 0; p < set.size(); ++p) {
      const FileBytes bytes = BytesOf(p);
      all += bytes.all;
      if (!set[p]) continue;
      loaded += bytes.all;
      lists += bytes.lists;
      blocks += (bytes.all + 4095) / 4096;
    }
    const auto memory = OpenSet(*store_, set);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(*HeldByGraph(*memory), always + loaded);
    EXPECT_EQ(memory->topology_bytes(), all);
    const auto direct = OpenSet(*store_, set, TopologyPlace::kDirect, 1 << 24);
    ASSERT_NE(direct, nullptr);
    EXPECT_EQ(*HeldByGraph(*direct), always + loaded - lists);
    EXPECT_EQ(direct->topology_bytes(), all);
    EXPECT_EQ(direct->parts()->list_cache->frame_count(), blocks);
  }
}

TEST_F(PartitionSetModelTest, OnlyTheHeadersOfTheOthersAreHeld) {
  Make(200, 3000);
  const PartitionMarks set = DrawSet();
  const auto graph = OpenSet(*store_, set, DrawPlace());
  ASSERT_NE(graph, nullptr);
  for (std::uint32_t p = 0; p < set.size(); ++p) {
    const Adjacency& partition = graph->partition(p);
    EXPECT_EQ(graph->is_loaded(p), set[p]);
    if (set[p]) continue;
    EXPECT_EQ(partition.edge_count(), whole_->partition(p).edge_count());
    EXPECT_EQ(partition.vertex_count(), 0u);
    for (const std::uint32_t kind : partition.file().Kinds())
      EXPECT_EQ(partition.file().Resident(kind), kind == Kind(PartitionSection::kHeader)) << kind;
  }
}

TEST_F(PartitionSetModelTest, RowsAreWarmedByTheDegreesThatAreKnown) {
  Make(2000, 6000);
  const PartitionMarks set = DrawSet();
  const auto graph = OpenSet(*store_, set);
  ASSERT_NE(graph, nullptr);
  const auto rows = RowLookup::Open(*graph, "feat", {.memory_bytes = 20000});
  ASSERT_OK(rows);
  ASSERT_OK((*rows)->Warm());
  std::vector<VertexId> vertices(whole_->vertex_count());
  for (std::size_t v = 0; v < vertices.size(); ++v) vertices[v] = static_cast<VertexId>(v);
  std::vector<std::byte> found(vertices.size() * (*rows)->row_bytes()), expected(found.size());
  ASSERT_OK((*rows)->Read(vertices, found));
  ASSERT_OK(whole_->ReadRows("feat", vertices, expected));
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace rhizome
