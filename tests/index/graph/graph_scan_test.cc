#include "rhizome/graph_scan.h"

#include <random>
#include <set>

#include "index/generation/graph_builder.h"
#include "rhizome/ingest.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::DrawBase;
using testing::OpenStore;
using testing::RandomBase;
using testing::TempDir;
using testing::UpdateModel;

std::vector<std::string> AllIds(VertexScan& scan) {
  std::vector<std::string> ids;
  std::optional<ExternalId> before;
  while (const auto entry = scan.Next()) {
    EXPECT_TRUE(!before || *before < entry->id);
    before = entry->id;
    ids.push_back(ToString(entry->id));
    EXPECT_EQ(*scan.graph().ExternalIdOf(entry->vertex), entry->id);
    EXPECT_EQ(*scan.graph().TypeOf(entry->vertex), entry->type);
  }
  return ids;
}

void ExpectVertices(const Graph& graph, const UpdateModel& model, bool string_ids,
                    std::mt19937_64& rng) {
  VertexScan scan(graph);
  std::vector<std::string> ids = AllIds(scan);
  std::vector<ExternalId> sorted;
  for (const std::string& id : ids)
    sorted.push_back(string_ids ? ExternalId(id) : ExternalId(*ParseCanonicalInteger(id)));
  std::set<std::string> expected;
  for (const auto& [id, vertex] : model.vertices()) expected.insert(id);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()), expected);
  EXPECT_EQ(ids.size(), expected.size());
  for (int draw = 0; draw < 5; ++draw) {
    const auto number = static_cast<std::int64_t>(rng() % 1100) - 20;
    const ExternalId wanted =
        string_ids ? ExternalId((draw % 2 == 0 ? "new" : "v") + std::to_string(number))
                   : ExternalId(number);
    ASSERT_OK(scan.Seek(wanted));
    const auto found = scan.Next();
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), wanted);
    ASSERT_EQ(found.has_value(), at != sorted.end());
    if (found) {
      EXPECT_EQ(found->id, *at);
    }
  }
}

void ExpectEdges(const Graph& graph, const UpdateModel& model, bool undirected, bool pairs_once) {
  auto scan = EdgeScan::Open(graph, {.pairs_once = pairs_once});
  ASSERT_OK(scan);
  std::vector<UpdateModel::Edge> found;
  const auto add = [&](VertexId src, VertexId dst, const EdgeScan::Entry& entry) {
    found.push_back({ToString(*graph.ExternalIdOf(src)), ToString(*graph.ExternalIdOf(dst)),
                     graph.edge_types()[entry.type], entry.weight});
  };
  while (true) {
    const auto entry = scan->Next();
    ASSERT_OK(entry);
    if (!*entry) break;
    add((*entry)->src, (*entry)->dst, **entry);
    if (pairs_once && undirected && (*entry)->src != (*entry)->dst)
      add((*entry)->dst, (*entry)->src, **entry);
  }
  EXPECT_EQ(scan->vertices_done(), graph.vertex_count());
  auto expected = model.edges();
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

TEST(GraphScanTest, ScansSayWhatTheModelHolds) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    TempDir dir;
    RandomBase base = DrawBase(rng);
    UpdateModel model(base.input);
    const bool string_ids = base.string_ids();
    const bool undirected = base.input.undirected;
    ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(base.input), base.options));
    const auto store = OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(
        **store, {.topology = rng() % 2 == 0 ? TopologyPlace::kMemory : TopologyPlace::kDirect,
                  .list_cache_bytes = rng() % 2 * 100000});
    ASSERT_OK(graph);
    for (int step = 0; step < 6; ++step) {
      ExpectVertices(**graph, model, string_ids, rng);
      ExpectEdges(**graph, model, undirected, rng() % 2 == 0);
      // The scan is opened before the write and read after it.
      VertexScan vertices(**graph);
      const std::size_t before = model.vertices().size();
      const WriteBatch batch = model.DrawBatch(rng, string_ids, 1 + rng() % 12);
      model.Apply(batch);
      ASSERT_OK((*graph)->Write(batch, {.sync = false, .create_types = true}));
      EXPECT_EQ(AllIds(vertices).size(), before);
      if (rng() % 5 == 0) {
        const JobControl control;
        ASSERT_OK((*graph)->Compact({}, control));
      }
      if (HasFailure()) return;
    }
  }
}

TEST(GraphScanTest, RefusesWhatTheStoreLacks) {
  std::mt19937_64 rng(1);
  TempDir dir;
  GraphInput input = testing::RandomGraph(rng, {.id_kind = ExternalIdKind::kInteger});
  BuildOptions options;
  options.directions = Direction::kIn;
  ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(input), options));
  const auto open = testing::OpenStoreGraph(dir / "g.rz");
  ASSERT_OK(open);
  EXPECT_STATUS(EdgeScan::Open(*open->graph, {.direction = Direction::kOut}), kInvalidArgument);
  EXPECT_OK(EdgeScan::Open(*open->graph, {.direction = Direction::kIn}));
  VertexScan scan(*open->graph);
  EXPECT_STATUS(scan.Seek(ExternalId("no number")), kInvalidArgument);
  EXPECT_OK(scan.Seek(ExternalId("7")));
}

}  // namespace
}  // namespace rhizome
