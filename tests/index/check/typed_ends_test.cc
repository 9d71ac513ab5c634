#include <gmock/gmock.h>

#include <random>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/array_change.h"
#include "rhizome/maintenance.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"
#include "testing/testing.h"

// Tests of the ends of edge types in a manifest: verify compares them with the edges, and repair
// writes them again.

namespace rhizome {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WrongEndsTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kVertexTypes = 3;
  static constexpr std::uint32_t kEdgeTypes = 4;

  /// Builds a graph in which edges of type 0 lead from vertex0 to vertex1, edges of type 1 from
  /// vertex2 to any vertex, edges of type 2 from any to any, and type 3 has no edge.
  void Build(Direction directions, bool undirected) {
    GraphInput input = testing::RandomGraph(
        rng_, {.vertices = 300, .vertex_types = kVertexTypes, .edge_types = kEdgeTypes});
    input.undirected = undirected;
    input.edges = EdgeList();
    const auto draw = [&](std::optional<TypeId> type) {
      while (true) {
        const std::uint64_t v = rng_() % input.vertex_count;
        if (!type || input.vertex_type[v] == *type) return static_cast<VertexId>(v);
      }
    };
    for (int i = 0; i < 600; ++i) {
      const auto type = static_cast<TypeId>(i % 3);
      input.edges.type.push_back(type);
      input.edges.src.push_back(draw(type == 0   ? std::optional<TypeId>(0)
                                     : type == 1 ? std::optional<TypeId>(2)
                                                 : std::nullopt));
      input.edges.dst.push_back(draw(type == 0 ? std::optional<TypeId>(1) : std::nullopt));
    }
    BuildOptions options;
    options.partition.partitions = 3;
    options.directions = directions;
    options.order = rng_() % 2 == 0 ? OrderKind::kPds : OrderKind::kNatural;
    options.topology_codec = rng_() % 2 == 0 ? TopologyCodec::kNone : TopologyCodec::kEliasFano;
    ASSERT_OK(testing::BuildStore(path_, std::move(input), options));
  }

  std::vector<EdgeEnds> Ends() {
    const auto store = testing::OpenStore(path_, Store::Mode::kRead);
    EXPECT_OK(store);
    return (*store)->manifest().info.edge_ends;
  }

  void SetEnds(std::vector<EdgeEnds> ends) {
    const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    auto change = ArrayChange::Begin(**store);
    ASSERT_OK(change);
    ASSERT_OK(change->SetEdgeEnds(std::move(ends)));
    ASSERT_OK(change->Commit());
  }

  std::string Found() {
    const auto report = VerifyStore(FileSystem::Posix(), path_, JobControl());
    EXPECT_OK(report);
    std::string found;
    for (const Damage& damage : report->damaged) found += damage.file + ": " + damage.what + "\n";
    return found;
  }

  RepairReport Repair(RepairOptions options = {}) {
    auto report = RepairGraph(FileSystem::Posix(), path_, options, JobControl());
    EXPECT_OK(report);
    return report ? *std::move(report) : RepairReport();
  }

  const testing::TempDir dir_;
  const Path path_ = dir_ / "g.rz";
  std::mt19937_64 rng_{testing::TestSeed()};
};

TEST_F(WrongEndsTest, VerifyFindsEndsThatAnEdgeContradictsAndRepairMendsThem) {
  for (const Direction directions : {Direction::kBoth, Direction::kOut, Direction::kIn}) {
    SCOPED_TRACE(static_cast<int>(directions));
    std::filesystem::remove_all(path_);
    Build(directions, /*undirected=*/false);
    const std::vector<EdgeEnds> right = {
        {.source = 0, .destination = 1}, {.source = 2}, EdgeEnds(), EdgeEnds()};
    ASSERT_EQ(Ends(), right);
    EXPECT_EQ(Found(), "");
    const std::pair<EdgeEnds, std::string> wrong[] = {
        {{.source = 0, .destination = 2}, "the type 'vertex0' and the type 'vertex2'"},
        {{.source = 1, .destination = 0}, "the type 'vertex1' and the type 'vertex0'"},
        {{.destination = 0}, "several types and the type 'vertex0'"}};
    for (std::size_t type = 0; type < std::size(wrong); ++type) {
      std::vector<EdgeEnds> ends = right;
      ends[type] = wrong[type].first;
      SetEnds(ends);
      EXPECT_THAT(Found(), AllOf(HasSubstr("/MANIFEST-"),
                                 HasSubstr("edge type 'edge" + std::to_string(type) + "'"),
                                 HasSubstr("but it says " + wrong[type].second)));
      EXPECT_EQ(Repair({.dry_run = true}).rebuilt.size(), 1U);
      EXPECT_EQ(Ends(), ends);
      const RepairReport report = Repair();
      EXPECT_EQ(report.found.size(), 1U);
      EXPECT_TRUE(report.lost.empty());
      EXPECT_EQ(Ends(), right);
      EXPECT_EQ(Found(), "");
    }
  }
}

TEST_F(WrongEndsTest, EndsThatSayLessOrAreOfNoEdgeAreRight) {
  Build(Direction::kBoth, /*undirected=*/false);
  const std::vector<EdgeEnds> wide = {
      {.source = 0}, EdgeEnds(), EdgeEnds(), {.source = 1, .destination = 1}};
  SetEnds(wide);
  EXPECT_EQ(Found(), "");
  EXPECT_TRUE(Repair().found.empty());
  EXPECT_EQ(Ends(), wide);
}

TEST_F(WrongEndsTest, AnUndirectedGraphHasBothDirections) {
  Build(Direction::kBoth, /*undirected=*/true);
  const std::vector<EdgeEnds> right(kEdgeTypes);
  ASSERT_EQ(Ends(), right);
  EXPECT_EQ(Found(), "");
  SetEnds({{.source = 0, .destination = 1}, EdgeEnds(), EdgeEnds(), EdgeEnds()});
  EXPECT_THAT(Found(), HasSubstr("the sources of edge type 'edge0' have several types"));
  Repair();
  EXPECT_EQ(Ends(), right);
}

}  // namespace
}  // namespace rhizome
