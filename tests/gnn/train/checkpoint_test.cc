#include "gnn/train/checkpoint.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/feed/epoch_plan.h"
#include "cache/job/safetensors.h"
#include "cache/job/stage_trace.h"
#include "gnn/gnn_testing.h"
#include "testing/golden.h"

// Tests of training checkpoints: a resumed training has the same outcome as one that was never
// stopped, for every optimiser and for checkpoints of older versions; damaged checkpoints and
// checkpoints of other jobs are refused. The last test checks the stage trace.

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

Result<TrainReport> Train(const TrainOptions& options) {
  const JobControl control;
  return rhizome_gnn_entry_v1()->Train(options, control);
}

/// Trains until `minibatches` are done, then cancels.
Status TrainUntil(const TrainOptions& options, std::uint64_t minibatches) {
  JobControl* self = nullptr;
  JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "train" && progress.done >= minibatches) self->Cancel();
  });
  self = &control;
  return testing::AsStatus(rhizome_gnn_entry_v1()->Train(options, control));
}

std::vector<std::pair<double, double>> Outcomes(const TrainReport& report) {
  std::vector<std::pair<double, double>> outcomes;
  for (const EpochReport& epoch : report.epochs)
    outcomes.emplace_back(epoch.loss, epoch.valid_accuracy);
  return outcomes;
}

Hash128 HashOf(const Path& path) {
  const auto loaded = LoadSafetensors(FileSystem::Posix(), path);
  EXPECT_OK(loaded);
  return loaded ? loaded->hash : Hash128{};
}

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(WriteStore(folder_ / "s", {}));
    options_ = SmallTraining(folder_ / "s");
    options_.model.dropout = 0.3;
    options_.learning.epochs = 3;
    options_.job.checkpoint_every = 2;
    options_.job.out = folder_ / "model.safetensors";
  }
  Path CheckpointFile() const { return folder_ / "s" / "scratch" / "train" / "CHECKPOINT"; }

  const TempDir folder_;
  TrainOptions options_;
};

TEST_F(CheckpointTest, AResumedRunEndsAsOneThatWasNeverStopped) {
  const Result<TrainReport> reference = Train(options_);
  ASSERT_OK(reference);
  EXPECT_EQ(reference->resumed_minibatches, 0u);
  EXPECT_FALSE(std::filesystem::exists(CheckpointFile()));
  const Hash128 wanted = HashOf(options_.job.out);
  // The training is stopped in the first epoch, near the end of an epoch, and near the end of the
  // training.
  std::uint64_t total = 0;
  JobControl counting([&](const JobControl::Progress& progress) {
    if (progress.phase == "train") total = progress.total;
  });
  ASSERT_OK(rhizome_gnn_entry_v1()->Train(options_, counting));
  for (const std::uint64_t stop : {std::uint64_t{3}, total / 3, total / 3 + 1, total - 1}) {
    SCOPED_TRACE(stop);
    options_.job.resume = false;
    EXPECT_STATUS(TrainUntil(options_, stop), kInterrupted);
    std::set<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(CheckpointFile().parent_path()))
      left.insert(entry.path().filename().string());
    EXPECT_EQ(left, (std::set<std::string>{"CHECKPOINT", "LOCK"}));
    options_.job.resume = true;
    options_.minibatch()->feed.superbatch =
        1 + static_cast<std::uint32_t>(stop % 5);  // must make no difference
    const Result<TrainReport> resumed = Train(options_);
    ASSERT_OK(resumed);
    EXPECT_EQ(resumed->resumed_minibatches, stop);
    EXPECT_EQ(Outcomes(*resumed), Outcomes(*reference));
    EXPECT_EQ(resumed->best_epoch, reference->best_epoch);
    EXPECT_EQ(resumed->test_accuracy, reference->test_accuracy);
    EXPECT_EQ(HashOf(options_.job.out), wanted);
    EXPECT_FALSE(std::filesystem::exists(CheckpointFile()));
  }
}

// The training is stopped during training and during validation; the checkpoint keeps the
// validation scores so far.
TEST_F(CheckpointTest, EveryOptimiserResumesToTheSameModel) {
  options_.learning.monitor = Metric::kF1Macro;
  options_.learning.schedule = {.kind = ScheduleKind::kCosine, .warmup = 1};
  options_.learning.weight_decay = 0.01;
  options_.learning.eval_every = 2;
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW, OptimizerKind::kSgd,
                                   OptimizerKind::kAdagrad}) {
    options_.learning.optimizer.kind = kind;
    options_.job.resume = false;
    const Result<TrainReport> reference = Train(options_);
    ASSERT_OK(reference);
    const Hash128 wanted = HashOf(options_.job.out);
    const std::uint64_t total = 3 * 4 + 2 * 4;  // epochs 2 and 3 end with a validation
    for (const std::uint64_t stop : {std::uint64_t{5}, total - 10, total - 1}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(kind) << " " << stop);
      options_.job.resume = false;
      EXPECT_STATUS(TrainUntil(options_, stop), kInterrupted);
      options_.job.resume = true;
      const Result<TrainReport> resumed = Train(options_);
      ASSERT_OK(resumed);
      EXPECT_EQ(resumed->resumed_minibatches, stop);
      EXPECT_EQ(Outcomes(*resumed), Outcomes(*reference));
      for (std::size_t e = 0; e < 3; ++e) {
        EXPECT_EQ(resumed->epochs[e].valid_metric, reference->epochs[e].valid_metric);
        EXPECT_EQ(resumed->epochs[e].learning_rate, reference->epochs[e].learning_rate);
      }
      EXPECT_EQ(HashOf(options_.job.out), wanted);
    }
  }
}

TEST_F(CheckpointTest, SeedsThatAreDoneAreNotTrainedAgain) {
  options_.learning.seeds = 2;
  const Result<TrainReport> reference = Train(options_);
  ASSERT_OK(reference);
  const Hash128 wanted = HashOf(options_.job.out);
  int trained = 0;
  JobControl* self = nullptr;
  JobControl control([&](const JobControl::Progress& progress) {
    trained += progress.phase == "train" ? 1 : 0;
    if (trained == 30) self->Cancel();  // each seed has 24 minibatches
  });
  self = &control;
  EXPECT_STATUS(rhizome_gnn_entry_v1()->Train(options_, control), kInterrupted);
  options_.job.resume = true;
  const Result<TrainReport> resumed = Train(options_);
  ASSERT_OK(resumed);
  EXPECT_EQ(resumed->resumed_minibatches, 30u);
  EXPECT_EQ(resumed->best_seed, reference->best_seed);
  ASSERT_EQ(resumed->seeds.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(resumed->seeds[i].best_epoch, reference->seeds[i].best_epoch);
    EXPECT_EQ(resumed->seeds[i].metrics.test->Of(Metric::kAccuracy),
              reference->seeds[i].metrics.test->Of(Metric::kAccuracy));
  }
  EXPECT_EQ(HashOf(options_.job.out), wanted);
}

/// Rewrites a checkpoint in the format from before metrics were introduced.
void MakeOld(const Path& path) {
  auto loaded = LoadSafetensors(FileSystem::Posix(), path);
  ASSERT_OK(loaded);
  TensorFile file = loaded->file;
  std::erase_if(file.tensors, [](const auto& tensor) { return tensor.first.starts_with("valid"); });
  auto progress = nlohmann::json::parse(file.metadata.at("progress"));
  for (const char* field : {"learning_rate", "valid_metric", "valid_loss"}) {
    progress["current"].erase(field);
    for (auto& epoch : progress["epochs"]) epoch.erase(field);
  }
  for (const char* part : {"train", "valid"}) progress[part]["correct"] = 1;
  file.metadata["progress"] = progress.dump();
  file.metadata.erase("xxh3");
  file.metadata["xxh3"] = ToHex(Xxh3(EncodeSafetensors(file)));
  ASSERT_OK(SaveSafetensors(path, file, OutputFile::Place::kScratch));
}

TEST_F(CheckpointTest, OlderOnesAreResumed) {
  const Result<TrainReport> reference = Train(options_);
  ASSERT_OK(reference);
  const Hash128 wanted = HashOf(options_.job.out);
  for (const std::uint64_t stop : {std::uint64_t{10}, std::uint64_t{23}}) {  // 23: in validation
    options_.job.resume = false;
    EXPECT_STATUS(TrainUntil(options_, stop), kInterrupted);
    MakeOld(CheckpointFile());
    options_.job.resume = true;
    const Result<TrainReport> resumed = Train(options_);
    ASSERT_OK(resumed);
    EXPECT_EQ(resumed->resumed_minibatches, stop == 23 ? 20u : stop);
    EXPECT_EQ(Outcomes(*resumed), Outcomes(*reference));
    EXPECT_EQ(resumed->best_epoch, reference->best_epoch);
    EXPECT_EQ(HashOf(options_.job.out), wanted);
  }
}

// The file was written by the version before tasks were introduced.
TEST(OldCheckpointTest, IsReadAsItWasWritten) {
  const Path path = testing::GoldenFolder("gnn") / "CHECKPOINT";
  const auto file = LoadSafetensors(FileSystem::Posix(), path);
  ASSERT_OK(file);
  const auto loaded = LoadCheckpoint(FileSystem::Posix(), path, file->file.metadata.at("job"));
  ASSERT_OK(loaded);
  ASSERT_TRUE(loaded->has_value());
  const Checkpoint& checkpoint = **loaded;
  const std::size_t weights = checkpoint.weights.size();
  EXPECT_GT(weights, 4u);
  EXPECT_EQ(checkpoint.best_weights.size(), weights);
  EXPECT_EQ(checkpoint.learner.tensors.size(), 2 * weights);
  EXPECT_TRUE(checkpoint.learner.tensors.contains("mean.0000"));
  EXPECT_TRUE(checkpoint.learner.tensors.contains("square.0001"));
  EXPECT_GT(checkpoint.learner.steps, 0);
  EXPECT_FALSE(checkpoint.valid_scores.defined());
  ASSERT_GT(checkpoint.progress.epochs.size(), 1u);
  for (const EpochReport& epoch : checkpoint.progress.epochs)
    EXPECT_EQ(epoch.valid_metric, epoch.valid_accuracy);
  const EpochReport& best = checkpoint.progress.epochs[checkpoint.progress.best_epoch - 1];
  EXPECT_EQ(checkpoint.progress.best_value, best.valid_accuracy);
}

TEST_F(CheckpointTest, WithoutOneAResumedRunBeginsAtTheBeginning) {
  options_.job.resume = true;
  const Result<TrainReport> report = Train(options_);
  ASSERT_OK(report);
  EXPECT_EQ(report->resumed_minibatches, 0u);
  EXPECT_EQ(report->epochs.size(), 3u);
}

TEST_F(CheckpointTest, MoreEpochsMayFollowButNoOtherRun) {
  const Result<TrainReport> reference = Train(options_);
  ASSERT_OK(reference);
  EXPECT_STATUS(TrainUntil(options_, 4), kInterrupted);
  options_.job.resume = true;
  TrainOptions other = options_;
  other.learning.learning_rate *= 2;
  const Result<TrainReport> refused = Train(other);
  EXPECT_STATUS(refused, kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("CHECKPOINT"));
  ASSERT_TRUE(std::filesystem::exists(CheckpointFile()));

  options_.learning.epochs = 4;
  const Result<TrainReport> longer = Train(options_);
  ASSERT_OK(longer);
  EXPECT_EQ(longer->resumed_minibatches, 4u);
  ASSERT_EQ(longer->epochs.size(), 4u);
  for (std::size_t e = 0; e < 3; ++e) EXPECT_EQ(longer->epochs[e].loss, reference->epochs[e].loss);
}

TEST_F(CheckpointTest, DamageIsFoundWhereverItIs) {
  EXPECT_STATUS(TrainUntil(options_, 4), kInterrupted);
  const auto bytes = ReadWholeFile(FileSystem::Posix(), CheckpointFile(), 1 << 24);
  ASSERT_OK(bytes);
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 30; ++i) {
    std::vector<std::byte> damaged = *bytes;
    damaged[random() % damaged.size()] ^= static_cast<std::byte>(1 << random() % 8);
    if (i % 3 == 0) damaged.resize(random() % damaged.size());
    const Path path = folder_ / "damaged";
    std::filesystem::remove(path);
    ASSERT_OK(WriteWholeFile(FileSystem::Posix(), path, damaged));
    const auto loaded = LoadCheckpoint(FileSystem::Posix(), path, "whatever");
    ASSERT_FALSE(loaded.has_value());
    EXPECT_NE(loaded.error().code(), StatusCode::kNotFound);
  }
  options_.job.resume = true;
  std::filesystem::resize_file(CheckpointFile(), bytes->size() - 1);
  EXPECT_STATUS(Train(options_), kCorruption);
}

TEST(EpochPlanTest, SkippingIsAskingWithoutLooking) {
  std::vector<VertexId> train(25), valid(7);
  for (std::size_t i = 0; i < 32; ++i)
    (i < 25 ? train[i] : valid[i - 25]) = static_cast<VertexId>(i);
  const EpochPlan plan(train, valid, {.batch_size = 4, .epochs = 3, .seed = 11});
  for (std::uint64_t skipped = 0; skipped <= 28; ++skipped) {
    EpochPlan asked = plan, skipping = plan;
    for (std::uint64_t i = 0; i < skipped; ++i) static_cast<void>(asked.Next());
    skipping.Skip(skipped);
    for (int i = 0; i < 4; ++i) {
      const auto a = asked.Next(), b = skipping.Next();
      ASSERT_EQ(a.has_value(), b.has_value()) << skipped;
      if (!a) break;
      EXPECT_EQ(a->tag, b->tag);
      EXPECT_EQ(a->vertices, b->vertices);
    }
  }
}

TEST(StageTraceTest, ShowsEveryStageOfARun) {
  const TempDir folder;
  ASSERT_OK(WriteStore(folder / "s", {}));
  TrainOptions options = SmallTraining(folder / "s");
  options.minibatch()->trace = folder / "trace.json";
  ASSERT_OK(Train(options));
  std::ifstream file(options.minibatch()->trace);
  const auto trace = nlohmann::json::parse(file);
  std::set<std::string> stages;
  std::map<std::string, double> ended;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::string stage = event.at("cat");
    stages.insert(stage);
    // Each stage runs on one thread, so it never overlaps itself.
    EXPECT_GE(event.at("ts").get<double>() + 0.2, ended[stage]);
    ended[stage] = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(stages,
            (std::set<std::string>{"sample", "schedule", "switch", "read", "wait", "compute"}));
}

}  // namespace
}  // namespace rhizome
