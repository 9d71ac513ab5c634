#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "gnn/gnn_testing.h"
#include "rhizome/graph.h"
#include "rhizome/train_options.h"
#include "rhizome/write_batch.h"
#include "testing/test_store.h"

// Tests of the report of rows that contain NaN or infinity: inference counts them, names the first
// vertex and the features that cause them, also over resumed and incremental runs; training refuses
// such features and names the vertex.

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::MakePlanted;
using testing::PlantedGraph;
using testing::PlantedOptions;
using testing::ReadArray;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

constexpr std::uint64_t kVertices = 1200;
constexpr std::int64_t kBad = 70;  // the vertex with a feature that is NaN or infinite

/// Runs inference over stores with a model that was trained on finite features.
class NonFiniteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteStore(folder_ / "good", {}));
    TrainOptions options = SmallTraining(folder_ / "good");
    options.learning.epochs = 1;
    options.job.out = folder_ / "model.safetensors";
    const JobControl control;
    ASSERT_OK(rhizome_gnn_entry_v1()->Train(options, control));
  }

  /// Writes a store in which the second feature of a vertex is `value`.
  Path StoreWith(float value) const {
    PlantedGraph graph = MakePlanted({});
    graph.features[kBad * 16 + 1] = value;
    EXPECT_OK(WriteStore(folder_ / "bad", {}, graph));
    return folder_ / "bad";
  }

  InferOptions Options(const Path& store, const std::string& out) {
    InferOptions options;
    options.store = store;
    options.model_file = folder_ / "model.safetensors";
    options.out = out;
    options.chunk_rows = 128;
    options.note = [this](std::string_view note) { notes_.emplace_back(note); };
    return options;
  }

  static Result<InferReport> Infer(const InferOptions& options) {
    const JobControl control;
    return rhizome_gnn_entry_v1()->Infer(options, control);
  }

  /// Returns the number of rows of an array that contain NaN or infinity and the first such vertex,
  /// by reading all rows through the public API.
  static InferReport::NonFinite Expected(const Path& path, const std::string& array) {
    InferReport::NonFinite expected{.array = array, .rows = 0, .first = {}};
    const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kRead);
    const auto graph = Graph::Open(std::as_const(**store));
    const ArrayEntry entry = (*store)->OpenArray(array).value()->entry();
    std::vector<float> row(entry.dim);
    for (std::int64_t v = 0; v < static_cast<std::int64_t>((*graph)->vertex_count()); ++v) {
      if ((*graph)->IsDeleted(v)) continue;
      EXPECT_OK(
          (*graph)->ReadRows(entry.name, std::span(&v, 1), std::as_writable_bytes(std::span(row))));
      if (std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); })) continue;
      if (expected.rows++ == 0) expected.first = *(*graph)->ExternalIdOf(v);
    }
    return expected;
  }

  static void ExpectEqual(const InferReport::NonFinite& a, const InferReport::NonFinite& b) {
    EXPECT_EQ(a.array, b.array);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_EQ(a.first, b.first);
  }

  const TempDir folder_;
  std::vector<std::string> notes_;
};

TEST_F(NonFiniteTest, NothingIsSaidOfFiniteRows) {
  for (const InferMode mode : {InferMode::kLayerwise, InferMode::kSamplewise}) {
    InferOptions options = Options(folder_ / "good", mode == InferMode::kLayerwise ? "a" : "b");
    options.mode = mode;
    const auto report = Infer(options);
    ASSERT_OK(report);
    EXPECT_TRUE(report->non_finite.empty());
  }
  EXPECT_TRUE(notes_.empty()) << notes_.front();
}

TEST_F(NonFiniteTest, RowsAndTheirCauseAreNamed) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Path store = StoreWith(value);
    for (const InferMode mode : {InferMode::kLayerwise, InferMode::kSamplewise}) {
      SCOPED_TRACE(std::to_string(value) + (mode == InferMode::kLayerwise ? " a" : " b"));
      notes_.clear();
      InferOptions options = Options(store, mode == InferMode::kLayerwise ? "a" : "b");
      options.mode = mode;
      options.resources.threads = 2;
      const auto report = Infer(options);
      ASSERT_OK(report);
      ASSERT_EQ(report->non_finite.size(), 2u);
      const InferReport::NonFinite expected = Expected(store, options.out);
      EXPECT_GT(expected.rows, 1u);
      EXPECT_LT(expected.rows, kVertices);
      ExpectEqual(report->non_finite[0], expected);
      ExpectEqual(report->non_finite[1], {.array = "feat", .rows = 1, .first = ExternalId(kBad)});
      ASSERT_EQ(notes_.size(), 1u);
      EXPECT_THAT(notes_.front(), HasSubstr(std::to_string(expected.rows) + " of 1200 rows"));
      EXPECT_THAT(notes_.front(), HasSubstr("array feat"));
      EXPECT_THAT(notes_.front(), HasSubstr("the first is 70"));
    }
    std::filesystem::remove_all(store);
  }
}

// The count includes chunks that an earlier run of the job wrote, and rows that are kept from the
// previous version.
TEST_F(NonFiniteTest, ResumedAndIncrementalRunsCountAllRows) {
  const Path store = StoreWith(std::numeric_limits<float>::quiet_NaN());
  ASSERT_OK(Infer(Options(store, "whole")));
  const InferReport::NonFinite expected = Expected(store, "whole");
  InferOptions options = Options(store, "resumed");
  JobControl* self = nullptr;
  JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "layer 2" && progress.done >= kVertices / 2) self->Cancel();
  });
  self = &control;
  options.tuning.block_rows = 128;
  EXPECT_STATUS(rhizome_gnn_entry_v1()->Infer(options, control), kInterrupted);
  options.resume = true;
  const auto resumed = Infer(options);
  ASSERT_OK(resumed);
  EXPECT_GT(resumed->resumed_chunks, 0u);
  ASSERT_EQ(resumed->non_finite.size(), 2u);
  EXPECT_EQ(resumed->non_finite[0].rows, expected.rows);

  options = Options(store, "versions");
  options.incremental = true;
  ASSERT_OK(Infer(options));
  {
    const auto opened = Store::Open(FileSystem::Posix(), store, Store::Mode::kWrite);
    ASSERT_OK(opened);
    const auto graph = Graph::Open(**opened);
    ASSERT_OK(graph);
    WriteBatch batch;
    batch.PutEdge(ExternalId(2), ExternalId(3));
    ASSERT_OK((*graph)->Write(batch));
  }
  const auto next = Infer(options);
  ASSERT_OK(next);
  EXPECT_GT(next->kept, 0u);
  ASSERT_EQ(next->non_finite.size(), 2u);
  EXPECT_EQ(next->non_finite[0].rows, Expected(store, "versions@2").rows);
}

// Rows of deleted vertices are not counted.
TEST_F(NonFiniteTest, RowsOfDeletedVerticesAreNotCounted) {
  const Path store = StoreWith(std::numeric_limits<float>::quiet_NaN());
  {
    const auto opened = Store::Open(FileSystem::Posix(), store, Store::Mode::kWrite);
    ASSERT_OK(opened);
    const auto graph = Graph::Open(**opened);
    ASSERT_OK(graph);
    WriteBatch batch;
    batch.DeleteVertex(ExternalId(kBad));
    ASSERT_OK((*graph)->Write(batch));
  }
  const auto report = Infer(Options(store, "a"));
  ASSERT_OK(report);
  EXPECT_TRUE(report->non_finite.empty());
}

// A row of NaN has no predicted class and is not a correct prediction; libtorch's argmax would
// treat NaN as the highest score.
TEST_F(NonFiniteTest, RowsWithoutAClassAreNotCorrect) {
  PlantedGraph graph = MakePlanted({});
  for (float& value : graph.features) value = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t& label : graph.labels) label = 0;
  graph.labels[1] = graph.labels[5] = 3;
  ASSERT_OK(WriteStore(folder_ / "bad", {}, graph));
  for (const InferMode mode : {InferMode::kLayerwise, InferMode::kSamplewise}) {
    InferOptions options = Options(folder_ / "bad", mode == InferMode::kLayerwise ? "a" : "b");
    options.mode = mode;
    const auto report = Infer(options);
    ASSERT_OK(report);
    EXPECT_EQ(report->test_accuracy, 0);
  }
}

TEST_F(NonFiniteTest, TrainingsOfEachWayNameTheVertex) {
  const Path store = StoreWith(std::numeric_limits<float>::quiet_NaN());
  TrainOptions options = SmallTraining(store);
  for (const bool full_graph : {false, true}) {
    SCOPED_TRACE(full_graph);
    if (full_graph) options.mode = FullGraphOptions();
    const JobControl control;
    const auto report = rhizome_gnn_entry_v1()->Train(options, control);
    EXPECT_STATUS(report, kInvalidArgument);
    EXPECT_THAT(report.error().message(), HasSubstr("array feat has NaN"));
    EXPECT_THAT(report.error().message(), HasSubstr("vertex 70"));
  }
}

}  // namespace
}  // namespace rhizome
