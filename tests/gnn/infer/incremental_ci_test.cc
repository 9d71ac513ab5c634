#include <cmath>
#include <random>

#include "cache/blocks/pass_order.h"
#include "gnn/gnn_testing.h"
#include "index/graph/delta_rows.h"
#include "rhizome/train_options.h"
#include "rhizome/write_batch.h"

// Tests of incremental inference: after random writes, its rows equal the rows of a full run; it
// keeps rows that cannot have changed, also across compactions, falls back to a full run if
// settings differ, and resumes after an interruption.

namespace rhizome {
namespace {

using testing::PlantedOptions;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

constexpr std::uint64_t kVertices = 700;

Result<InferReport> Infer(const InferOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->Infer(options, control);
}

/// Returns the rows of all vertices by vertex id, including new ones.
Result<std::vector<float>> AllRows(const Path& path, const std::string& name) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  RHIZOME_ASSIGN_OR_RETURN(const auto array, store->OpenArray(name));
  const ArrayEntry& entry = array->entry();
  std::vector<float> rows(graph->vertex_count() * entry.dim);
  const auto in_files = std::span(rows).first(entry.rows * entry.dim);
  RHIZOME_RETURN_IF_ERROR(array->ReadRows(0, entry.rows, std::as_writable_bytes(in_files)));
  if (const auto delta = DeltaRows::Of(graph->Snapshot(), entry)) {
    RHIZOME_RETURN_IF_ERROR(delta->Overlay(0, std::as_writable_bytes(std::span(rows))));
  }
  std::vector<float> by_vertex(rows.size());
  for (std::uint64_t v = 0; v < graph->vertex_count(); ++v) {
    const auto row = static_cast<std::uint64_t>(*graph->RowOf(static_cast<VertexId>(v)));
    std::copy_n(rows.data() + row * entry.dim, entry.dim, by_vertex.data() + v * entry.dim);
  }
  return by_vertex;
}

class IncrementalTest : public ::testing::TestWithParam<testing::NetworkCase> {
 protected:
  void SetUp() override {
    PlantedOptions planted;
    planted.vertices = kVertices;
    ASSERT_OK(WriteStore(store(), planted));
    TrainOptions options = SmallTraining(store());
    options.model = GetParam().spec;
    options.learning.epochs = 1;
    options.job.out = folder_ / "model.safetensors";
    const JobControl control;
    ASSERT_OK(rhizome_gnn_entry_v1()->Train(options, control));
  }

  Path store() const { return folder_ / "s"; }

  InferOptions Options(const std::string& out) const {
    InferOptions options;
    options.store = store();
    options.model_file = folder_ / "model.safetensors";
    options.out = out;
    options.chunk_rows = 128;
    return options;
  }
  InferOptions Incremental() const {
    InferOptions options = Options("x");
    options.incremental = true;
    return options;
  }

  /// Applies a few random writes; the number of vertices grows by `added`.
  void Write(std::uint64_t added) {
    const auto opened = Store::Open(FileSystem::Posix(), store(), Store::Mode::kWrite);
    ASSERT_OK(opened);
    const auto graph = Graph::Open(**opened, {});
    ASSERT_OK(graph);
    const std::uint64_t count = (*graph)->vertex_count();
    const auto any = [&] { return ExternalId(static_cast<std::int64_t>(random_() % count)); };
    WriteBatch batch;
    for (std::uint64_t i = 0; i < added; ++i) {
      const ExternalId id(static_cast<std::int64_t>(count + i));
      batch.PutEdge(id, any());
      PutFeatures(batch, id);
    }
    const std::uint64_t kinds = 1 + random_() % 15;
    if ((kinds & 1) != 0) batch.PutEdge(any(), any());
    if ((kinds & 2) != 0) PutFeatures(batch, any());
    if ((kinds & 4) != 0) {
      const auto vertex = static_cast<VertexId>(random_() % count);
      const auto list = (*graph)->Neighbors(vertex, Direction::kOut);
      ASSERT_OK(list);
      if (!list->empty()) batch.DeleteEdge(ExternalId(vertex), ExternalId(list->front().vertex));
    }
    ASSERT_OK((*graph)->Write(batch, {}));
    if ((kinds & 8) != 0 && random_() % 4 == 0) {
      WriteBatch last;
      last.DeleteVertex(any());
      ASSERT_OK((*graph)->Write(last, {}));
    }
  }

  void Compact() const {
    const auto opened = Store::Open(FileSystem::Posix(), store(), Store::Mode::kWrite);
    ASSERT_OK(opened);
    const auto graph = Graph::Open(**opened, {});
    ASSERT_OK(graph);
    ASSERT_OK((*graph)->Compact({}, JobControl()));
  }

  /// Overwrites a row of the newest version of an array with zeros.
  void OverwriteRow(const std::string& array, std::int64_t id) const {
    const auto opened = Store::Open(FileSystem::Posix(), store(), Store::Mode::kWrite);
    ASSERT_OK(opened);
    const auto graph = Graph::Open(**opened, {});
    ASSERT_OK(graph);
    const auto found = (*opened)->OpenArray(array);
    ASSERT_OK(found);
    WriteBatch batch;
    const std::vector<float> zeros((*found)->entry().dim);
    batch.PutRow(ExternalId(id), (*found)->entry().name, std::span<const float>(zeros));
    ASSERT_OK((*graph)->Write(batch, {}));
  }

  void ExpectNearRows(const std::string& a, const std::string& b) const {
    const auto rows_a = AllRows(store(), a);
    const auto rows_b = AllRows(store(), b);
    ASSERT_OK(rows_a);
    ASSERT_OK(rows_b);
    ASSERT_EQ(rows_a->size(), rows_b->size());
    for (std::size_t i = 0; i < rows_a->size(); ++i)
      ASSERT_NEAR((*rows_a)[i], (*rows_b)[i], 1e-4 * (1 + std::fabs((*rows_b)[i])))
          << a << " and " << b << ", value " << i;
  }

  void PutFeatures(WriteBatch& batch, const ExternalId& id) {
    std::vector<float> row(16);
    for (float& value : row) value = static_cast<float>(random_() % 1000) / 500 - 1;
    batch.PutRow(id, "feat", std::span<const float>(row));
  }

  void ExpectSameRows(const std::string& a, const std::string& b) const {
    const auto rows_a = AllRows(store(), a);
    const auto rows_b = AllRows(store(), b);
    ASSERT_OK(rows_a);
    ASSERT_OK(rows_b);
    EXPECT_EQ(*rows_a, *rows_b) << a << " and " << b;
  }

  const TempDir folder_;
  std::mt19937_64 random_{testing::TestSeed()};
};

INSTANTIATE_TEST_SUITE_P(Kinds, IncrementalTest, ::testing::ValuesIn(testing::RegisteredNetworks()),
                         ::testing::PrintToStringParamName());

TEST_P(IncrementalTest, EqualsAFullRunAfterWritesOfAnyKind) {
  const auto first = Infer(Incremental());
  ASSERT_OK(first);
  EXPECT_EQ(first->kept, 0u);
  EXPECT_NE(first->full_because, "");
  std::uint64_t kept = 0;
  for (int round = 0; round < 3; ++round) {
    Write(round == 1 ? 3 : 0);
    const auto report = Infer(Incremental());
    ASSERT_OK(report);
    EXPECT_EQ(report->full_because, "");
    EXPECT_EQ(report->array, "x@" + std::to_string(round + 2));
    EXPECT_EQ(report->layers.back().vertices, report->vertices - report->kept);
    kept += report->kept;
    const std::string full = "full-" + std::to_string(round);
    const auto all = Infer(Options(full));
    ASSERT_OK(all);
    EXPECT_EQ(report->test_accuracy, all->test_accuracy);
    EXPECT_EQ(report->valid_accuracy, all->valid_accuracy);
    ExpectSameRows("x", full);
  }
  EXPECT_GT(kept, 0u);
}

TEST_P(IncrementalTest, SampledNeighboursAndScoresAreKeptToo) {
  InferOptions options = Incremental();
  options.fanouts = {4, 3};
  options.scores = true;
  ASSERT_OK(Infer(options));
  std::uint64_t kept = 0;
  for (int round = 0; round < 3; ++round) {  // a single round may happen to reach every vertex
    Write(1);
    const auto report = Infer(options);
    ASSERT_OK(report);
    kept += report->kept;
    InferOptions full = options;
    full.out = "full-" + std::to_string(round);
    full.incremental = false;
    ASSERT_OK(Infer(full));
    ExpectSameRows("x", full.out);
  }
  EXPECT_GT(kept, 0u);
}

TEST_P(IncrementalTest, WithoutAChangeNothingIsComputed) {
  ASSERT_OK(Infer(Incremental()));
  const auto report = Infer(Incremental());
  ASSERT_OK(report);
  EXPECT_EQ(report->kept, kVertices);
  EXPECT_EQ(report->layers[0].vertices, 0u);
  ExpectSameRows("x@1", "x@2");
}

TEST_P(IncrementalTest, ContinuesAcrossCompactions) {
  ASSERT_OK(Infer(Incremental()));
  std::uint64_t kept = 0;
  for (int round = 0; round < 3; ++round) {
    Write(round == 1 ? 3 : 0);
    if (round == 1) OverwriteRow("x", static_cast<std::int64_t>(random_() % 100));
    Compact();
    if (round == 2) Compact();
    Write(0);
    const auto report = Infer(Incremental());
    ASSERT_OK(report);
    EXPECT_EQ(report->full_because, "");
    EXPECT_EQ(report->kept_across_compaction, report->kept > 0);
    kept += report->kept;
    const std::string full = "full" + std::to_string(round);
    ASSERT_OK(Infer(Options(full)));
    ExpectNearRows("x", full);
  }
  EXPECT_GT(kept, 0u);
}

TEST_P(IncrementalTest, OtherSettingsMakeItAFullRun) {
  ASSERT_OK(Infer(Incremental()));
  InferOptions options = Incremental();
  options.fanouts = {2, 2};
  auto report = Infer(options);
  ASSERT_OK(report);
  EXPECT_NE(report->full_because.find("fanout"), std::string::npos) << report->full_because;
  EXPECT_EQ(report->kept, 0u);
  options.mode = InferMode::kSamplewise;
  EXPECT_STATUS(Infer(options), kInvalidArgument);
}

TEST_P(IncrementalTest, AnInterruptedRunResumesAndGivesTheSameBytes) {
  ASSERT_OK(Infer(Incremental()));
  Write(2);
  for (std::uint64_t steps = 1; steps < 12; steps += 2) {
    InferOptions options = Incremental();
    JobControl* self = nullptr;
    std::uint64_t seen = 0;
    JobControl control([&](const JobControl::Progress&) {
      if (++seen >= steps) self->Cancel();
    });
    self = &control;
    static_cast<void>(rhizome_gnn_entry_v1()->Infer(options, control));
    options.resume = true;
    options.resources.threads = 2;
    ASSERT_OK(Infer(options));
    // The full run is now the newest version and is of this snapshot, so the next incremental run
    // would keep all rows. Drop it.
    const auto dropped = Infer(Options("full-" + std::to_string(steps)));
    ASSERT_OK(dropped);
    ExpectSameRows("x", "full-" + std::to_string(steps));
    Write(0);
  }
}

}  // namespace
}  // namespace rhizome
