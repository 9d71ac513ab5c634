#include <cmath>
#include <filesystem>
#include <random>
#include <utility>

#include "gnn/infer/layerwise_testing.h"
#include "gnn/typed_testing.h"

// Tests of inference with an array for each vertex type, for every registered model, over a store
// with a delta.

namespace rhizome {
namespace {

using testing::FilesOf;
using testing::NetworkCase;
using testing::ReadArray;
using testing::TempDir;
using testing::TypedTraining;

Result<InferReport> Infer(const InferOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->Infer(options, control);
}

/// Trains a model a little.
class TypedInferTest : public ::testing::TestWithParam<NetworkCase> {
 protected:
  void SetUp() override {
    ASSERT_OK(testing::WriteTypedStore(store()));
    TrainOptions options = TypedTraining(store());
    options.model = GetParam().spec;
    options.learning.epochs = 1;
    options.learning.test = false;
    options.job.out = model();
    const JobControl control;
    ASSERT_OK(rhizome_gnn_entry_v1()->Train(options, control));
    ASSERT_OK(testing::WriteTypedDelta(store(), testing::TestSeed()));
  }

  Path store() const { return folder_ / "s"; }
  Path model() const { return folder_ / "model.safetensors"; }
  InferOptions Options(const std::string& out) const {
    InferOptions options;
    options.store = store();
    options.model_file = model();
    options.out = out;
    options.chunk_rows = 256;
    return options;
  }

  const TempDir folder_;
};

INSTANTIATE_TEST_SUITE_P(All, TypedInferTest, ::testing::ValuesIn(testing::RegisteredNetworks()),
                         ::testing::PrintToStringParamName());

TEST_P(TypedInferTest, LayerwiseEqualsSamplewise) {
  std::vector<std::vector<float>> results;
  for (const InferMode mode : {InferMode::kLayerwise, InferMode::kSamplewise}) {
    InferOptions options = Options(mode == InferMode::kLayerwise ? "a" : "b");
    options.mode = mode;
    options.scores = true;
    const auto report = Infer(options);
    ASSERT_OK(report);
    EXPECT_EQ(report->inputs.has_value(), mode == InferMode::kLayerwise);
    EXPECT_TRUE(report->non_finite.empty());
    const auto rows = ReadArray(store(), report->array);
    ASSERT_OK(rows);
    results.push_back(*rows);
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    const float most = std::max(1.0F, std::abs(results[1][i]));
    ASSERT_NEAR(results[0][i], results[1][i], 1e-4F * most) << i;
  }
}

TEST_P(TypedInferTest, BytesDoNotDependOnMemoryOrThreads) {
  ASSERT_OK(Infer(Options("whole")));
  const auto whole = FilesOf(store(), "whole");
  ASSERT_OK(whole);
  int count = 0;
  for (const auto& [block_rows, threads, cache] :
       {std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>{128, 1, 0}, {640, 3, 1 << 16}}) {
    InferOptions options = Options("cut-" + std::to_string(++count));
    options.tuning.block_rows = block_rows;
    options.tuning.cache_bytes = cache;
    options.resources.threads = threads;
    ASSERT_OK(Infer(options));
    EXPECT_EQ(*whole, *FilesOf(store(), options.out)) << block_rows;
  }
  const auto runs = testing::LayerwiseRuns::Open(store(), model());
  ASSERT_OK(runs);
  std::vector<std::vector<float>> rows;
  for (const auto& [stage_rows, chunk_rows] :
       {std::pair<std::uint64_t, std::uint64_t>{2000, 512}, {7, 128}}) {
    LayerwiseOptions options;
    options.inputs = {{.vertex_type = "paper", .array = "feat"},
                      {.vertex_type = "author", .array = "author_feat"},
                      {.vertex_type = "venue", .array = "feat"},
                      {.vertex_type = "site", .array = {}}};
    options.output.name = "x";
    options.chunk_rows = chunk_rows;
    options.memory.stage_bytes = stage_rows * 24 * sizeof(float);
    const auto made = runs->Run(options, folder_ / ("scratch-" + std::to_string(stage_rows)));
    ASSERT_OK(made);
    rows.push_back(*made);
  }
  EXPECT_TRUE(rows[0] == rows[1]);
}

/// Stops a job after `steps` progress reports.
void RunInterrupted(const InferOptions& options, std::uint64_t steps) {
  JobControl* self = nullptr;
  std::uint64_t seen = 0;
  JobControl control([&](const JobControl::Progress&) {
    if (++seen >= steps) self->Cancel();
  });
  self = &control;
  static_cast<void>(rhizome_gnn_entry_v1()->Infer(options, control));
}

TEST_P(TypedInferTest, AnInterruptedJobResumesAndGivesTheSameBytes) {
  ASSERT_OK(Infer(Options("whole")));
  std::uint64_t resumed = 0;
  for (const std::uint64_t steps : {3, 7, 12}) {
    InferOptions options = Options("stopped-" + std::to_string(steps));
    options.tuning.block_rows = 128;
    RunInterrupted(options, steps);
    options.resume = true;
    options.resources.threads = 2;
    const auto report = Infer(options);
    ASSERT_OK(report);
    resumed += report->resumed_chunks;
    EXPECT_EQ(*FilesOf(store(), "whole"), *FilesOf(store(), options.out)) << steps;
  }
  EXPECT_GT(resumed, 0u);
}

/// Changes the row of one author.
Status ChangeARow(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store, {}));
  std::int64_t author = 0;
  while (testing::TypeOfTyped(static_cast<std::uint64_t>(author)) != 1 ||
         graph->IsDeleted(static_cast<VertexId>(author)))
    ++author;
  const std::vector<float> row(5, 1.5F);
  WriteBatch batch;
  batch.PutRow(ExternalId(author), "author_feat", std::span<const float>(row));
  return testing::AsStatus(graph->Write(batch, {}));
}

// The first updates may change all rows; the second changes one.
TEST_P(TypedInferTest, OnlyRowsThatCanHaveChangedAreComputedAgain) {
  InferOptions options = Options("emb");
  options.new_version = true;
  ASSERT_OK(Infer(options));
  for (std::int64_t round = 1; round <= 2; ++round) {
    ASSERT_OK(round == 1 ? testing::WriteTypedDelta(store(), testing::TestSeed(), round)
                         : ChangeARow(store()));
    options.incremental = true;
    const auto some = Infer(options);
    ASSERT_OK(some);
    EXPECT_TRUE(some->full_because.empty()) << some->full_because;
    EXPECT_TRUE(round == 1 || some->kept > 0);
    InferOptions full = Options("full-" + std::to_string(round));
    ASSERT_OK(Infer(full));
    const auto kept = ReadArray(store(), some->array);
    const auto computed = ReadArray(store(), full.out);
    ASSERT_OK(kept);
    ASSERT_OK(computed);
    EXPECT_TRUE(*kept == *computed) << round;
  }
  // Another array for a type is another computation.
  options.data.inputs = {{.vertex_type = "venue", .array = "feat"}};
  const auto same = Infer(options);
  ASSERT_OK(same);
  EXPECT_EQ(same->kept, same->vertices);
}

class TypedInferErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(testing::WriteTypedStore(store()));
    TrainOptions options = TypedTraining(store());
    options.learning.epochs = 1;
    options.learning.test = false;
    options.job.out = options_.model_file = folder_ / "model.safetensors";
    const JobControl control;
    ASSERT_OK(rhizome_gnn_entry_v1()->Train(options, control));
    options_.store = store();
    options_.out = "emb";
  }
  Path store() const { return folder_ / "s"; }

  void ExpectRefused(StatusCode code, const std::string& text) const {
    const auto report = Infer(options_);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), code) << report.error().message();
    EXPECT_NE(report.error().message().find(text), std::string::npos) << report.error().message();
  }

  const TempDir folder_;
  InferOptions options_;
};

TEST_F(TypedInferErrors, InputsThatDoNotFitTheModelAreNamed) {
  options_.data.inputs = {{.vertex_type = "author", .array = "feat"}};
  ExpectRefused(StatusCode::kInvalidArgument, "author");
  options_.data.inputs = {{.vertex_type = "paper", .array = {}}};
  ExpectRefused(StatusCode::kInvalidArgument, "paper");
  options_.data.inputs = {{.vertex_type = "site", .array = "feat"}};
  ExpectRefused(StatusCode::kInvalidArgument, "site");
  options_.data.inputs = {{.vertex_type = "journal", .array = "feat"}};
  ExpectRefused(StatusCode::kInvalidArgument, "journal");
  options_.data.inputs = {{.vertex_type = "paper", .array = "nowhere"}};
  ExpectRefused(StatusCode::kNotFound, "nowhere");
}

TEST_F(TypedInferErrors, AStoreWithOtherTypesIsRefused) {
  const Path other = folder_ / "other";
  ASSERT_OK(testing::WriteStore(other, {}));
  options_.store = other;
  ExpectRefused(StatusCode::kUnsupported, "vertex");
}

TEST_F(TypedInferErrors, AModelOfOneArrayHasNoInputsByType) {
  const Path other = folder_ / "other";
  ASSERT_OK(testing::WriteStore(other, {}));
  TrainOptions options = testing::SmallTraining(other);
  options.learning.epochs = 1;
  options.learning.test = false;
  options.job.out = options_.model_file = folder_ / "untyped.safetensors";
  const JobControl control;
  ASSERT_OK(rhizome_gnn_entry_v1()->Train(options, control));
  options_.store = other;
  options_.data.inputs = {{.vertex_type = "vertex", .array = "feat"}};
  ExpectRefused(StatusCode::kInvalidArgument, "one array");
}

}  // namespace
}  // namespace rhizome
