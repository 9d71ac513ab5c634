#include <functional>
#include <string>

#include "gnn/gnn_testing.h"
#include "gnn/relations_testing.h"
#include "testing/golden.h"

// Tests of HGT over a store with vertex types and edge types: training, and what is not supported
// is refused by name. typed_network_test.cc has the tests of all typed kinds.

namespace rhizome {
namespace {

using testing::SmallTraining;
using testing::TempDir;

const GnnEntry& HgtGnn() { return *rhizome_gnn_entry_v1(); }

class TypedHgtTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(testing::WriteRelationStore(store(), {}, {"a", "b", "c"})); }

  Result<TrainReport> Train(const std::function<void(TrainOptions&)>& change = {}) const {
    TrainOptions options = SmallTraining(store());
    options.model = {.kind = "hgt", .hidden = 16};
    options.learning.epochs = 4;
    options.job.out = model();
    if (change) change(options);
    const JobControl control;
    return HgtGnn().Train(options, control);
  }

  InferOptions Inference(const std::string& out) const {
    InferOptions options;
    options.store = store();
    options.model_file = model();
    options.out = out;
    options.scores = true;
    return options;
  }

  static Result<InferReport> Infer(const InferOptions& options) {
    const JobControl control;
    return HgtGnn().Infer(options, control);
  }

  Path store() const { return folder_ / "s"; }
  Path model() const { return folder_ / "model.safetensors"; }

  const TempDir folder_;
};

TEST_F(TypedHgtTest, LearnsPlantedClasses) {
  const auto trained = Train([](TrainOptions& options) { options.learning.epochs = 40; });
  ASSERT_OK(trained);
  const auto report = Infer(Inference("x"));
  ASSERT_OK(report);
  EXPECT_GT(report->test_accuracy.value_or(0), 0.6);
}

TEST_F(TypedHgtTest, ThreadsDoNotChangeTheModelFile) {
  ASSERT_OK(Train());
  const auto bytes = testing::ReadBytes(model());
  ASSERT_OK(Train([](TrainOptions& options) { options.resources.threads = 3; }));
  EXPECT_TRUE(testing::ReadBytes(model()) == bytes);
}

TEST_F(TypedHgtTest, WhatItDoesNotSupportIsRefusedByName) {
  const auto full = Train([](TrainOptions& options) { options.mode = FullGraphOptions(); });
  EXPECT_STATUS(full, kInvalidArgument);
  EXPECT_NE(full.error().message().find("model hgt"), std::string::npos);
}

TEST_F(TypedHgtTest, InferenceFollowsTheDirectionOfTheTraining) {
  ASSERT_OK(Train([](TrainOptions& options) {
    options.model.kind = "sage";
    options.data.sampling.direction = Direction::kBoth;
    options.learning.epochs = 1;
  }));
  std::vector<std::string> notes;
  const auto infer = [&](const std::string& out, std::optional<Direction> direction) {
    InferOptions options = Inference(out);
    options.data.sampling.direction = direction;
    options.note = [&](std::string_view note) {
      if (note.find("direction") != note.npos) notes.emplace_back(note);
    };
    return Infer(options);
  };
  const auto recorded = infer("x", std::nullopt);
  ASSERT_OK(recorded);
  EXPECT_EQ(recorded->direction, Direction::kBoth);
  const auto same = infer("y", Direction::kBoth);
  ASSERT_OK(same);
  EXPECT_EQ(*testing::ReadArray(store(), "x"), *testing::ReadArray(store(), "y"));
  EXPECT_TRUE(notes.empty()) << notes.front();
  const auto other = infer("z", Direction::kIn);
  ASSERT_OK(other);
  EXPECT_EQ(other->direction, Direction::kIn);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes.front().find("direction=both"), std::string::npos) << notes.front();
}

TEST_F(TypedHgtTest, AStoreWithAnotherVertexTypeIsRefusedByName) {
  ASSERT_OK(Train([](TrainOptions& options) { options.learning.epochs = 1; }));
  ASSERT_OK(testing::WriteRelationStore(folder_ / "t", {}, {"c", "later", "a"}));
  InferOptions options = Inference("x");
  options.store = folder_ / "t";
  const auto report = Infer(options);
  EXPECT_STATUS(report, kUnsupported);
  EXPECT_NE(report.error().message().find("later"), std::string::npos);
  // Other numbers of the same types are no difference.
  ASSERT_OK(testing::WriteRelationStore(folder_ / "u", {}, {"b", "c", "a"}));
  options.store = folder_ / "u";
  EXPECT_OK(Infer(options));
}

}  // namespace
}  // namespace rhizome
