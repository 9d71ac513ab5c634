#include <cmath>
#include <filesystem>

#include "cache/job/safetensors.h"
#include "gnn/models/model.h"
#include "gnn/typed_testing.h"

// Tests of training with an array for each vertex type.

namespace rhizome {
namespace {

using testing::TempDir;
using testing::TypedTraining;

Result<TrainReport> Train(const TrainOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->Train(options, control);
}

class TypedTrainTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(testing::WriteTypedStore(store())); }
  Path store() const { return folder_ / "s"; }
  Path model(const std::string& name) const { return folder_ / (name + ".safetensors"); }

  Result<TensorFile> TrainedAs(TrainOptions options, const std::string& name) const {
    options.job.out = model(name);
    RHIZOME_RETURN_IF_ERROR(testing::AsStatus(Train(options)));
    RHIZOME_ASSIGN_OR_RETURN(LoadedTensorFile file,
                             LoadSafetensors(FileSystem::Posix(), model(name)));
    return std::move(file.file);
  }

  const TempDir folder_;
};

TEST_F(TypedTrainTest, TheModelLearnsFromAllArrays) {
  TrainOptions options = TypedTraining(store());
  options.learning.epochs = 12;
  options.job.out = model("m");
  const auto report = Train(options);
  ASSERT_OK(report);
  EXPECT_LT(report->epochs.back().loss, report->epochs.front().loss);
  ASSERT_TRUE(report->metrics.test.has_value());
  EXPECT_GT(*report->test_accuracy, 0.32);  // of four classes
  const auto file = LoadSafetensors(FileSystem::Posix(), model("m"));
  ASSERT_OK(file);
  const auto made = Model::FromFile(file->file);
  ASSERT_OK(made);
  const ModelShape& shape = made->shape();
  EXPECT_EQ(shape.vertex_types, testing::kTypeNames);
  ASSERT_EQ(shape.typed_inputs.size(), 4u);
  EXPECT_EQ(shape.typed_inputs[1].array, "author_feat");
  EXPECT_EQ(shape.typed_inputs[1].dim, 5);
  EXPECT_EQ(shape.typed_inputs[3].dim, 0);
}

TEST_F(TypedTrainTest, TheModelDoesNotDependOnMemoryOrSuperbatches) {
  const TrainOptions options = TypedTraining(store());
  const auto whole = TrainedAs(options, "whole");
  ASSERT_OK(whole);
  TrainOptions small = options;
  small.minibatch()->feed.cache_bytes = 8192;
  small.minibatch()->feed.superbatch = 2;
  const auto cut = TrainedAs(small, "cut");
  ASSERT_OK(cut);
  EXPECT_TRUE(EncodeSafetensors(*whole) == EncodeSafetensors(*cut));
}

TEST_F(TypedTrainTest, AnInterruptedTrainingContinuesWithTheSameInputs) {
  TrainOptions options = TypedTraining(store());
  const auto whole = TrainedAs(options, "whole");
  ASSERT_OK(whole);
  options.job.name = "stopped";
  options.job.checkpoint_every = 1;
  options.job.out = model("stopped");
  JobControl* self = nullptr;
  std::uint64_t seen = 0;
  JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "train" && ++seen == 6) self->Cancel();
  });
  self = &control;
  EXPECT_STATUS(rhizome_gnn_entry_v1()->Train(options, control), kInterrupted);
  options.job.resume = true;
  TrainOptions other = options;
  other.data.inputs[3].array = "author_feat";  // of venues
  other.data.inputs[1].array = "feat";
  EXPECT_STATUS(Train(other), kInvalidArgument);
  const auto resumed = TrainedAs(options, "stopped");
  ASSERT_OK(resumed);
  EXPECT_TRUE(EncodeSafetensors(*whole) == EncodeSafetensors(*resumed));
}

TEST_F(TypedTrainTest, TypesWithoutAnArrayAreReported) {
  TrainOptions options = TypedTraining(store());
  options.data.inputs = {{.vertex_type = "author", .array = "author_feat"},
                         {.vertex_type = "site", .array = {}},
                         {.vertex_type = "venue", .array = {}},
                         {.vertex_type = "paper", .array = {}}};
  options.learning.epochs = 1;
  ASSERT_OK(Train(options));
  options.data.inputs.push_back({.vertex_type = "paper", .array = "feat"});
  EXPECT_STATUS(Train(options), kInvalidArgument);
  options.data.inputs = {{.vertex_type = "nobody", .array = "feat"}};
  EXPECT_STATUS(Train(options), kInvalidArgument);
}

TEST_F(TypedTrainTest, WhereSeveralArraysAreNotSupportedTheyAreRefusedByName) {
  const auto refused = [](const TrainOptions& options, const std::string& text) {
    const auto report = Train(options);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), StatusCode::kUnsupported) << report.error().message();
    EXPECT_NE(report.error().message().find(text), std::string::npos) << report.error().message();
  };
  TrainOptions options = TypedTraining(store());
  options.mode = FullGraphOptions();
  refused(options, "`full_graph`");
}

TEST_F(TypedTrainTest, TheOptionOfTheInputLayerNeedsInputsByType) {
  TrainOptions options = testing::SmallTraining(store());
  options.model.options["input-activation"] = "relu";
  const auto report = Train(options);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message().find("input-activation"), std::string::npos);
  TrainOptions typed = TypedTraining(store());
  typed.model.options = {{"input-activation", "relu"}, {"input-dropout", "0.2"}};
  typed.learning.epochs = 1;
  ASSERT_OK(Train(typed));
}

}  // namespace
}  // namespace rhizome
