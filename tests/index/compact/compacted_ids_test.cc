#include "index/compact/compacted_ids.h"

#include <gtest/gtest.h>

#include <random>

#include "index/base/memory_sink.h"
#include "rhizome/graph.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::UpdateModel;

/// Builds the dictionary from the id of each vertex of a graph.
template <typename Id>
std::vector<std::byte> Dictionary(const GraphSnapshot& graph) {
  std::vector<Id> ids;
  std::vector<VertexId> deleted;
  for (VertexId v = 0; v < static_cast<VertexId>(graph.vertex_count()); ++v) {
    ids.push_back(std::get<Id>(*graph.ExternalIdOf(v)));
    if (graph.IsDeleted(v)) deleted.push_back(v);
  }
  MemorySink sink;
  EXPECT_OK(VertexIds::Write(sink, graph.store().id(), std::span<const Id>(ids), deleted));
  return sink.Take();
}

void ExpectTheDictionary(const GraphSnapshot& graph) {
  const auto delta = graph.delta();
  if (delta == nullptr) return;
  const CompactedIds ids(*graph.parts(), *delta);
  if (ids.kind() == ExternalIdKind::kDense) return;
  MemorySink sink;
  ASSERT_OK(ids.Write(sink, graph.store().id()));
  EXPECT_EQ(sink.Take(), ids.kind() == ExternalIdKind::kString ? Dictionary<std::string>(graph)
                                                               : Dictionary<std::int64_t>(graph));
}

// New ids are between old ones. Some ids are deleted, and some are deleted and put again, before
// and after a compaction merges them.
TEST(CompactedIdsTest, TheDictionaryIsThatOfTheMergedGraph) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const ExternalIdKind kind : {ExternalIdKind::kString, ExternalIdKind::kInteger}) {
    SCOPED_TRACE(kind == ExternalIdKind::kString ? "strings" : "integers");
    testing::TempDir dir;
    testing::RandomBase base = testing::DrawBase(rng);
    while (base.input.id_kind != kind) base = testing::DrawBase(rng);
    UpdateModel model(base.input);
    const bool string_ids = base.string_ids();
    ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(base.input), base.options));
    const auto store = testing::OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    for (int step = 0; step < 6; ++step) {
      const WriteBatch batch = model.DrawBatch(rng, string_ids, 12);
      model.Apply(batch);
      ASSERT_OK((*graph)->Write(batch, {.sync = false, .create_types = true}));
      ASSERT_NO_FATAL_FAILURE(ExpectTheDictionary(*(*graph)->Snapshot()));
      const JobControl control;
      if (step == 2) ASSERT_OK((*graph)->Compact({}, control));
    }
  }
}

}  // namespace
}  // namespace rhizome
