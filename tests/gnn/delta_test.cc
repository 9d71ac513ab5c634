#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "gnn/gnn_testing.h"
#include "index/base/edge_list.h"
#include "rhizome/change_feed.h"
#include "rhizome/maintenance.h"
#include "rhizome/sampler.h"
#include "rhizome/train_options.h"
#include "rhizome/write_batch.h"
#include "testing/test_store.h"

// Tests that training and inference over a store with a delta give the same result as on a store
// that was ingested from the final graph, before, during and after a compaction.

namespace rhizome {
namespace {

using testing::MakePlanted;
using testing::PlantedGraph;
using testing::PlantedOptions;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

ExternalId IdOf(std::uint64_t vertex) { return static_cast<std::int64_t>(vertex); }

/// Changes a planted graph, and records the same changes in a batch.
class Updates {
 public:
  Updates(PlantedGraph& graph, const PlantedOptions& options, std::uint64_t seed)
      : graph_(graph), dim_(options.dim), rng_(seed) {}

  const WriteBatch& batch() const { return batch_; }

  void AddVertices(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t vertex = graph_.labels.size();
      batch_.PutVertex(IdOf(vertex));
      graph_.labels.push_back(0);
      graph_.split.push_back(0);
      graph_.features.resize(graph_.features.size() + dim_);
      PutRows(vertex, static_cast<std::uint8_t>(vertex % 3));
      for (int e = 0; e < 6; ++e) PutEdge(vertex, rng_() % vertex);
    }
  }

  void PutEdges(int count) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t src = rng_() % graph_.labels.size();
      PutEdge(src, (src + 1 + rng_() % (graph_.labels.size() - 1)) % graph_.labels.size());
    }
  }

  void DeleteEdges(int count) {
    for (int i = 0; i < count; ++i) {
      const std::size_t e = rng_() % graph_.edges.size();
      const VertexId src = graph_.edges.src[e];
      const VertexId dst = graph_.edges.dst[e];
      batch_.DeleteEdge(ExternalId(src), ExternalId(dst));
      EraseEdges(
          [&](VertexId a, VertexId b) { return (a == src && b == dst) || (a == dst && b == src); });
    }
  }

  void ChangeRows(int count) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t vertex = rng_() % graph_.labels.size();
      PutRows(vertex, graph_.split[vertex]);
    }
  }

  /// Deletes vertices. Call last: a later mention would create new vertices. A deleted vertex
  /// remains in the planted graph, as a vertex that is in no set.
  void DeleteVertices(int count) {
    for (int i = 0; i < count; ++i) {
      const auto vertex = static_cast<VertexId>(rng_() % graph_.labels.size());
      batch_.DeleteVertex(ExternalId(vertex));
      EraseEdges([&](VertexId a, VertexId b) { return a == vertex || b == vertex; });
      graph_.split[static_cast<std::size_t>(vertex)] = 255;
    }
  }

 private:
  void PutEdge(std::uint64_t src, std::uint64_t dst) {
    batch_.PutEdge(IdOf(src), IdOf(dst));
    graph_.edges.src.push_back(static_cast<VertexId>(src));
    graph_.edges.dst.push_back(static_cast<VertexId>(dst));
  }

  void PutRows(std::uint64_t vertex, std::uint8_t split) {
    std::normal_distribution<float> noise;
    const std::span<float> row = std::span(graph_.features).subspan(vertex * dim_, dim_);
    for (float& value : row) value = noise(rng_);
    graph_.labels[vertex] = static_cast<std::int64_t>(rng_() % 4);
    graph_.split[vertex] = split;
    batch_.PutRow(IdOf(vertex), "feat", std::span<const float>(row));
    batch_.PutRow(IdOf(vertex), "label", std::span<const std::int64_t>(&graph_.labels[vertex], 1));
    batch_.PutRow(IdOf(vertex), "split", std::span<const std::uint8_t>(&graph_.split[vertex], 1));
  }

  template <typename Gone>
  void EraseEdges(const Gone& gone) {
    EdgeList left;
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
      if (gone(graph_.edges.src[e], graph_.edges.dst[e])) continue;
      left.src.push_back(graph_.edges.src[e]);
      left.dst.push_back(graph_.edges.dst[e]);
    }
    graph_.edges = std::move(left);
  }

  PlantedGraph& graph_;
  const std::uint64_t dim_;
  std::mt19937_64 rng_;
  WriteBatch batch_;
};

/// Two stores of one graph: the original with a delta, and one made of the final edge list. Rows
/// are in vertex-id order in both, so that sums have the same order.
class GnnDeltaTest : public ::testing::TestWithParam<testing::NetworkCase> {
 protected:
  void MakeStores(std::uint64_t new_vertices) {
    PlantedOptions options;
    options.vertices = 600;
    options.order = OrderKind::kNatural;
    options.partitions = 1;
    PlantedGraph graph = MakePlanted(options);
    ASSERT_OK(WriteStore(changed(), options, graph));
    Updates updates(graph, options, testing::TestSeed());
    updates.AddVertices(new_vertices);
    updates.DeleteEdges(100);
    updates.PutEdges(100);
    updates.ChangeRows(40);
    updates.DeleteVertices(5);
    auto store = Store::Open(FileSystem::Posix(), changed(), Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto live = Graph::Open(**store);
    ASSERT_OK(live);
    ASSERT_OK((*live)->Write(updates.batch()));
    sequence_ = (*live)->sequence();
    options.vertices += new_vertices;
    ASSERT_OK(WriteStore(made_anew(), options, graph));
  }

  Path changed() const { return folder_ / "changed"; }
  Path made_anew() const { return folder_ / "anew"; }
  Path model() const { return folder_ / "model.safetensors"; }

  Result<TrainReport> Train(const Path& store,
                            TopologyPlace topology = TopologyPlace::kMemory) const {
    TrainOptions options = SmallTraining(store);
    options.model = GetParam().spec;
    options.model.dropout =
        0;  // its mask depends on positions in the minibatch, which the order of lists changes
    options.minibatch()->fanouts = {kAllNeighbors, kAllNeighbors};
    options.learning.epochs = 1;
    options.data.topology = topology;
    options.resources.io = IoMaker::kPread;
    options.job.out = model();
    const JobControl control;
    return rhizome_gnn_entry_v1()->Train(options, control);
  }

  Result<InferReport> Infer(const Path& store, InferMode mode, const std::string& out,
                            const JobControl& control = JobControl()) const {
    InferOptions options;
    options.store = store;
    options.model_file = model();
    options.out = out;
    options.mode = mode;
    options.tuning.block_rows = 128;
    options.chunk_rows = 128;
    return rhizome_gnn_entry_v1()->Infer(options, control);
  }

  /// Returns rows by vertex id, including the rows of new vertices.
  static std::vector<float> RowsOf(const Path& path, const std::string& array) {
    const auto open = testing::OpenStoreGraph(path);
    EXPECT_OK(open);
    const ArrayEntry* const entry = open->store->manifest().FindArray(array);
    EXPECT_NE(entry, nullptr) << array;
    if (entry == nullptr) return {};
    std::vector<VertexId> vertices(open->graph->vertex_count());
    std::iota(vertices.begin(), vertices.end(), 0);
    std::vector<float> rows(vertices.size() * entry->dim);
    EXPECT_OK(open->graph->ReadRows(array, vertices, std::as_writable_bytes(std::span(rows))));
    return rows;
  }

  static void Compact(const Path& path) {
    auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto live = Graph::Open(**store);
    ASSERT_OK(live);
    const JobControl control;
    ASSERT_OK((*live)->Compact({}, control));
  }

  /// Expects that verify finds no damage and that no row is reported as out of date.
  static void ExpectSoundAndFresh(const Path& path) {
    const auto report = VerifyStore(FileSystem::Posix(), path, JobControl());
    ASSERT_OK(report);
    for (const Damage& damage : report->damaged)
      ADD_FAILURE() << damage.file << ": " << damage.what;
    const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kRead);
    ASSERT_OK(store);
    for (const ArrayEntry& array : (*store)->manifest().arrays)
      EXPECT_FALSE(array.name.ends_with(".stale")) << array.name;
  }

  static void ExpectClose(double a, double b) { EXPECT_NEAR(a, b, 1e-3 * (1 + std::abs(b))); }

  const TempDir folder_;
  std::uint64_t sequence_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kinds, GnnDeltaTest, ::testing::ValuesIn(testing::RegisteredNetworks()),
                         ::testing::PrintToStringParamName());

TEST_P(GnnDeltaTest, TrainingOverADeltaIsTrainingOnTheFinalGraph) {
  ASSERT_NO_FATAL_FAILURE(MakeStores(20));
  const auto with_delta = Train(changed());
  ASSERT_OK(with_delta);
  const auto from_disk = Train(changed(), TopologyPlace::kDirect);
  ASSERT_OK(from_disk);
  EXPECT_EQ(from_disk->epochs.front().loss, with_delta->epochs.front().loss);
  const auto without = Train(made_anew());
  ASSERT_OK(without);
  ASSERT_EQ(with_delta->epochs.size(), without->epochs.size());
  for (std::size_t e = 0; e < without->epochs.size(); ++e) {
    ExpectClose(with_delta->epochs[e].loss, without->epochs[e].loss);
    EXPECT_NEAR(with_delta->epochs[e].valid_accuracy, without->epochs[e].valid_accuracy, 0.02);
  }
  EXPECT_NEAR(*with_delta->test_accuracy, *without->test_accuracy, 0.02);
  EXPECT_EQ(with_delta->majority_accuracy, without->majority_accuracy);
}

TEST_P(GnnDeltaTest, InferenceOverADeltaIsInferenceOnTheFinalGraph) {
  ASSERT_NO_FATAL_FAILURE(MakeStores(20));
  ASSERT_OK(Train(made_anew()));
  for (const InferMode mode : {InferMode::kLayerwise, InferMode::kSamplewise}) {
    const bool layerwise = mode == InferMode::kLayerwise;
    const std::string out = layerwise ? "layerwise" : "samplewise";
    const auto with_delta = Infer(changed(), mode, out);
    ASSERT_OK(with_delta);
    EXPECT_EQ(with_delta->vertices, 620U);
    const auto without = Infer(made_anew(), mode, out);
    ASSERT_OK(without);
    EXPECT_NEAR(with_delta->test_accuracy.value_or(-1), without->test_accuracy.value_or(-2),
                layerwise ? 0 : 0.02);
    const auto a = RowsOf(changed(), out);
    const auto b = RowsOf(made_anew(), out);
    ASSERT_EQ(a.size(), 620U * 16);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      // Layerwise inference adds neighbours by row; samplewise inference adds them in list order.
      ASSERT_NEAR(a[i], b[i], layerwise ? 0 : 1e-4) << i;
    }
  }
  const auto store = Store::Open(FileSystem::Posix(), changed(), Store::Mode::kRead);
  ASSERT_OK(store);
  const ArrayEntry* entry = (*store)->manifest().FindArray("layerwise");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->rows, 600U);
  const std::map<std::string, std::string> facts(entry->attributes.begin(),
                                                 entry->attributes.end());
  EXPECT_TRUE(facts.at("snapshot").ends_with("sequence " + std::to_string(sequence_)))
      << facts.at("snapshot");
  ASSERT_NO_FATAL_FAILURE(ExpectSoundAndFresh(changed()));

  // Computed rows are not reported to followers.
  const auto graph = Graph::Open(std::as_const(**store));
  ASSERT_OK(graph);
  const auto feed = ChangeFeed::Open(**graph, {});
  ASSERT_OK(feed);
  Change change;
  std::set<std::string> put;
  while ((*feed)->Next(change).value_or(false))
    if (change.kind == Change::Kind::kPutRow) put.insert(change.name);
  EXPECT_EQ(put, (std::set<std::string>{"feat", "label", "split"}));
}

// Inference over a delta gives the same result as inference after a compaction has merged the
// delta. The compaction carries the array over unchanged, with no row out of date.
TEST_P(GnnDeltaTest, InferenceBeforeACompactionIsInferenceAfterIt) {
  ASSERT_NO_FATAL_FAILURE(MakeStores(20));
  ASSERT_OK(Train(changed()));
  ASSERT_OK(Infer(changed(), InferMode::kLayerwise, "early"));
  const auto early = RowsOf(changed(), "early");
  ASSERT_NO_FATAL_FAILURE(Compact(changed()));
  EXPECT_EQ(RowsOf(changed(), "early"), early);
  ASSERT_NO_FATAL_FAILURE(ExpectSoundAndFresh(changed()));
  ASSERT_OK(Infer(changed(), InferMode::kLayerwise, "late"));
  EXPECT_EQ(RowsOf(changed(), "late"), early);
}

// If a compaction runs during the inference, the rows of new vertices are stored in the order of
// the new generation.
TEST_P(GnnDeltaTest, InferenceOverADeltaThatIsCompactedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(MakeStores(20));
  ASSERT_OK(Train(changed()));
  ASSERT_OK(Infer(changed(), InferMode::kLayerwise, "before"));
  bool compacted = false;
  const JobControl control([&](const JobControl::Progress&) {
    if (!std::exchange(compacted, true)) Compact(changed());
  });
  ASSERT_OK(Infer(changed(), InferMode::kLayerwise, "meanwhile", control));
  ASSERT_TRUE(compacted);
  EXPECT_EQ(RowsOf(changed(), "meanwhile"), RowsOf(changed(), "before"));
  ASSERT_NO_FATAL_FAILURE(ExpectSoundAndFresh(changed()));
}

}  // namespace
}  // namespace rhizome
