#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "index/graph/edges_of_vertex.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_ids.h"
#include "index/topology/vertex_order.h"
#include "rhizome/graph.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"
#include "testing/update_history.h"
#include "testing/update_model.h"

// Graphs that are opened with TopologyPlace::kLazy: their answers, and what happens when a block
// that a look-up reads is damaged.

namespace rhizome {
namespace {

using testing::DrawBase;
using testing::DrawCompaction;
using testing::OpenStore;
using testing::RandomBase;
using testing::RandomGraph;
using testing::TempDir;
using testing::UpdateModel;

constexpr GraphOptions kLazy = {.topology = TopologyPlace::kLazy};

struct LazyGraph {
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
};

Result<LazyGraph> OpenLazy(const Path& path, const GraphOptions& options = kLazy) {
  LazyGraph lazy;
  RHIZOME_ASSIGN_OR_RETURN(lazy.store, OpenStore(path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(lazy.graph, Graph::Open(std::as_const(*lazy.store), options));
  return lazy;
}

// Expects that the edges of each vertex are as in the model, and that the number of an edge
// leads to its weight.
void ExpectEdgesOfVertices(const GraphSnapshot& graph, const UpdateModel& model,
                           Direction directions) {
  const std::vector<std::string> types = graph.edge_types();
  const bool symmetric = graph.info().symmetric;
  for (const auto& [id, _] : model.vertices()) {
    SCOPED_TRACE("vertex " + id);
    const auto vertex = graph.FindText(id);
    ASSERT_OK(vertex);
    for (const Direction list : {Direction::kOut, Direction::kIn}) {
      if (!symmetric && directions != Direction::kBoth && directions != list) continue;
      std::vector<UpdateModel::Entry> found;
      std::map<std::string, std::uint64_t> counts;
      ASSERT_OK(VisitEdgesOf(graph, *vertex, list, std::nullopt, [&](const EdgeOfVertex& edge) {
        const Neighbor& neighbor = edge.neighbor;
        found.emplace_back(graph.NameOf(neighbor.vertex), types[neighbor.type], neighbor.weight);
        ++counts[types[neighbor.type]];
        EXPECT_EQ(edge.list, list);
        EXPECT_TRUE(edge.edge || !graph.info().weighted);
        if (edge.edge && graph.info().weighted) {
          float weight = -1;
          EXPECT_OK(ReadEdgeRows(graph, "weight", std::span(&*edge.edge, 1),
                                 std::as_writable_bytes(std::span(&weight, 1))));
          EXPECT_EQ(weight, neighbor.weight);
        }
        return Status::Ok();
      }));
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, model.EntriesOf(id, list));
      const auto degrees = CountEdgesOf(graph, *vertex, list);
      ASSERT_OK(degrees);
      std::map<std::string, std::uint64_t> counted;
      for (const TypeDegree& degree : *degrees) counted[types[degree.type]] = degree.count;
      EXPECT_EQ(counted, counts);
      if (found.empty()) continue;
      const TypeId type = degrees->front().type;
      std::uint64_t of_type = 0;
      ASSERT_OK(VisitEdgesOf(graph, *vertex, list, type, [&](const EdgeOfVertex& edge) {
        EXPECT_EQ(edge.neighbor.type, type);
        ++of_type;
        return Status::Ok();
      }));
      EXPECT_EQ(of_type, degrees->front().count);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(LazyGraphTest, AnswersAreThoseOfTheModel) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    TempDir dir;
    RandomBase base = DrawBase(rng);
    constexpr OrderKind kOrders[] = {OrderKind::kPds, OrderKind::kNatural, OrderKind::kRandom};
    base.options.order = kOrders[round % 3];
    UpdateModel model(base.input);
    const bool string_ids = base.string_ids();
    const Direction directions = base.options.directions;
    ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(base.input), base.options));
    const auto store = OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = Graph::Open(**store);
    ASSERT_OK(writer);
    for (int step = 0; step < 5; ++step) {
      GraphOptions options = kLazy;
      options.list_cache_bytes = rng() % 2 * 100000;
      const auto lazy = OpenLazy(dir / "g.rz", options);
      ASSERT_OK(lazy);
      model.ExpectAgrees(*lazy->graph, directions);
      ExpectEdgesOfVertices(*lazy->graph, model, directions);
      if (HasFailure()) return;
      const WriteBatch batch = model.DrawBatch(rng, string_ids, 1 + rng() % 12);
      model.Apply(batch);
      ASSERT_OK((*writer)->Write(batch, {.sync = true, .create_types = true}));
      if (step != 2) continue;
      const JobControl control;
      ASSERT_OK((*writer)->Compact(DrawCompaction(rng), control));  // deleted vertices in the files
    }
  }
}

TEST(LazyGraphTest, RefusesWhatNeedsAllLists) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  ASSERT_OK(testing::BuildStore(dir / "g.rz", RandomGraph(rng, {}), {}));
  auto store = OpenStore(dir / "g.rz", Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store, kLazy);
  ASSERT_OK(graph);
  const auto expect_refused = [](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    EXPECT_NE(status.message().find("`topology=lazy`"), std::string::npos) << status.ToString();
  };
  const auto snapshot = (*graph)->Snapshot();
  const auto sampler = Sampler::Create(*snapshot, {.fanouts = {2}});
  ASSERT_FALSE(sampler);
  expect_refused(sampler.error());
  const auto scan = EdgeScan::Open(**graph);
  ASSERT_FALSE(scan);
  expect_refused(scan.error());
  WriteBatch batch;
  batch.PutVertex(std::int64_t{0});
  const auto written = (*graph)->Write(batch);
  ASSERT_FALSE(written);
  expect_refused(written.error());
  const JobControl control;
  const auto compacted = (*graph)->Compact({}, control);
  ASSERT_FALSE(compacted);
  expect_refused(compacted.error());
}

/// All answers about one vertex, as text, so that they can be compared.
Result<std::string> AnswersAbout(const GraphSnapshot& graph, VertexId vertex,
                                 const std::string& id) {
  std::string text;
  RHIZOME_ASSIGN_OR_RETURN(const VertexId found, graph.FindText(id));
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId own, graph.ExternalIdOf(vertex));
  RHIZOME_ASSIGN_OR_RETURN(const Row row, graph.RowOf(vertex));
  RHIZOME_ASSIGN_OR_RETURN(const VertexId back, graph.VertexAt(row));
  RHIZOME_ASSIGN_OR_RETURN(const TypeId type, graph.TypeOf(vertex));
  for (const std::int64_t number : {found, row, back, std::int64_t{type}})
    text += std::to_string(number) + " ";
  text += ToString(own);
  RHIZOME_ASSIGN_OR_RETURN(const auto list, graph.Neighbors(vertex, Direction::kBoth));
  for (const Neighbor& neighbor : list)
    text += " " + std::to_string(neighbor.vertex) + "/" + std::to_string(neighbor.type) + "/" +
            std::to_string(neighbor.weight);
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, graph.Degree(vertex, Direction::kIn));
  return text + " " + std::to_string(degree);
}

class DamagedStore {
 public:
  explicit DamagedStore(const Path& file) : file_(file) {
    std::ifstream in(file, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  ~DamagedStore() { Write(bytes_); }
  std::size_t size() const { return bytes_.size(); }
  void Flip(std::size_t at) {
    std::string changed = bytes_;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    Write(changed);
  }

 private:
  void Write(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
  }
  const Path file_;
  std::string bytes_;
};

// A look-up reads few blocks, so that damage elsewhere does not concern it, but never believes a
// damaged block.
TEST(LazyGraphTest, DamagedBlocksAreReportedByTheLookUpsThatReadThem) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  BuildOptions options;
  options.partition.kind = PartitionerKind::kRandom;
  options.partition.partitions = 2;
  const std::uint64_t vertices = 20000;
  ASSERT_OK(testing::BuildStore(dir / "g.rz",
                                RandomGraph(rng, {.vertices = vertices,
                                                  .edges = 60000,
                                                  .vertex_types = 2,
                                                  .edge_types = 3,
                                                  .weighted = true,
                                                  .id_kind = ExternalIdKind::kString}),
                                options));
  std::vector<VertexId> probes;
  for (int i = 0; i < 20; ++i) probes.push_back(static_cast<VertexId>(rng() % vertices));
  std::vector<std::string> ids, expected;
  {
    const auto sound = testing::OpenStoreGraph(dir / "g.rz");
    ASSERT_OK(sound);
    for (const VertexId vertex : probes) {
      ids.push_back(sound->graph->NameOf(vertex));
      const auto answers = AnswersAbout(*sound->graph, vertex, ids.back());
      ASSERT_OK(answers);
      expected.push_back(*answers);
    }
  }
  std::size_t answered = 0, refused = 0;
  for (const std::string& name :
       {PartitionPath(0), PartitionPath(1), std::string(kOrderPath), std::string(kVertexIdsPath)}) {
    DamagedStore damaged(dir / "g.rz" / "generations" / "000001" / name);
    ASSERT_GT(damaged.size(), std::size_t{100} << 10) << name << " is not paged";
    for (int flip = 0; flip < 12; ++flip) {
      const std::size_t at = rng() % damaged.size();
      SCOPED_TRACE(name + ", byte " + std::to_string(at));
      damaged.Flip(at);
      const auto lazy = OpenLazy(dir / "g.rz");
      if (!lazy) {
        EXPECT_EQ(lazy.error().code(), StatusCode::kCorruption) << lazy.error().ToString();
        continue;
      }
      for (std::size_t i = 0; i < probes.size(); ++i) {
        const auto answers = AnswersAbout(*lazy->graph, probes[i], ids[i]);
        if (answers) {
          EXPECT_EQ(*answers, expected[i]);
          ++answered;
        } else {
          EXPECT_EQ(answers.error().code(), StatusCode::kCorruption) << answers.error().ToString();
          EXPECT_NE(answers.error().message().find(name), std::string::npos)
              << answers.error().ToString();
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(answered, refused);  // most look-ups do not read the damaged block
  EXPECT_GT(refused, 0U);
}

TEST(LazyGraphTest, AScanOfVerticesEndsAtADamagedId) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  ASSERT_OK(testing::BuildStore(
      dir / "g.rz",
      RandomGraph(rng, {.vertices = 20000, .edges = 10, .id_kind = ExternalIdKind::kString}), {}));
  DamagedStore damaged(dir / "g.rz" / "generations" / "000001" / kVertexIdsPath);
  damaged.Flip(damaged.size() / 2);
  const auto lazy = OpenLazy(dir / "g.rz");
  ASSERT_OK(lazy);
  VertexScan scan(*lazy->graph);
  std::uint64_t seen = 0;
  while (scan.Next()) ++seen;
  EXPECT_LT(seen, 20000U);
  EXPECT_STATUS(scan.status(), kCorruption);
  EXPECT_FALSE(scan.Next());
}

}  // namespace
}  // namespace rhizome
