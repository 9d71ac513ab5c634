#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "cache/job/safetensors.h"
#include "gnn/gnn_testing.h"
#include "gnn/train/class_weights.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_graph.h"
#include "rhizome/sampler.h"
#include "rhizome/train_options.h"

// Tests of training for every task (classes, binary, multi-label, regression): metrics, early
// stopping, learning-rate schedules, several seeds, warm starts, class weights, interruption, and
// the refusal of contradictory options or bad labels and features.

namespace rhizome {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using testing::MakePlanted;
using testing::PlantedGraph;
using testing::PlantedOptions;
using testing::SmallTraining;
using testing::TempDir;
using testing::WriteStore;

/// Writes a planted graph with labels of every kind, all derived from the planted class c: `binary`
/// is c >= 2; `flags` are c == 1, c >= 2 and c != 3 (every eleventh missing); `number` is c - 1.5
/// plus noise (every eleventh missing).
Status WriteTaskStore(const Path& path) {
  const PlantedOptions options;
  const PlantedGraph planted = MakePlanted(options);
  std::vector<std::int32_t> binary;
  std::vector<std::uint8_t> flags;
  std::vector<float> numbers;
  for (std::uint64_t v = 0; v < options.vertices; ++v) {
    const auto c = static_cast<std::uint64_t>(planted.labels[v]);
    binary.push_back(c >= 2 ? 1 : 0);
    for (const bool flag : {c == 1, c >= 2, c != 3})
      flags.push_back(flags.size() % 11 == 0 ? 255 : static_cast<std::uint8_t>(flag));
    numbers.push_back(numbers.size() % 11 == 0 ? std::nanf("")
                                               : static_cast<float>(c) - 1.5F +
                                                     0.1F * planted.features[v * options.dim]);
  }
  GraphInput input;
  input.vertex_count = options.vertices;
  input.edges = planted.edges;
  input.undirected = true;
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  input.arrays = {testing::MakeArray("feat", options.dim, DataType::kFloat32, planted.features),
                  testing::MakeArray("label", 1, DataType::kInt64, planted.labels),
                  testing::MakeArray("binary", 1, DataType::kInt32, binary),
                  testing::MakeArray("flags", 3, DataType::kUint8, flags),
                  testing::MakeArray("number", 1, DataType::kFloat32, numbers),
                  testing::MakeArray("split", 1, DataType::kUint8, planted.split)};
  input.arrays.front().chunk_rows = options.chunk_rows;
  return testing::AsStatus(
      IngestGraph(FileSystem::Posix(), path, std::move(input), {}, StoreId(), JobControl()));
}

Result<TrainReport> TrainTask(const TrainOptions& options) {
  return rhizome_gnn_entry_v1()->Train(options, JobControl());
}

TensorFile LoadModel(const Path& path) {
  const auto loaded = LoadSafetensors(FileSystem::Posix(), path);
  EXPECT_OK(loaded);
  return loaded ? loaded->file : TensorFile{};
}

bool HaveSameWeights(const TensorFile& a, const TensorFile& b) {
  return a.tensors.size() == b.tensors.size() &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.values == y.second.values;
                    });
}

class TasksTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    ASSERT_OK(WriteTaskStore(*folder_ / "s"));
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  TrainOptions Options(std::uint32_t epochs) const {
    TrainOptions options = SmallTraining(*folder_ / "s");
    options.learning.epochs = epochs;
    options.learning.learning_rate = 0.02;
    options.job.note = [this](std::string_view note) { notes_.emplace_back(note); };
    return options;
  }

  static TempDir* folder_;
  mutable std::vector<std::string> notes_;
};

TempDir* TasksTest::folder_ = nullptr;

TEST_F(TasksTest, EveryTaskIsLearnt) {
  struct Case {
    const char* labels;
    std::optional<Task> asked;
    Task task;
    Metric metric;
    double least;
  };
  for (const Case& one : {Case{"label", {}, Task::kMulticlass, Metric::kAccuracy, 0.8},
                          Case{"binary", Task::kBinary, Task::kBinary, Metric::kRocAuc, 0.9},
                          Case{"flags", {}, Task::kMultilabel, Metric::kF1Micro, 0.85},
                          Case{"number", {}, Task::kRegression, Metric::kR2, 0.5}}) {
    SCOPED_TRACE(one.labels);
    TrainOptions options = Options(15);
    options.data.labels = one.labels;
    options.learning.task = one.asked;
    const Result<TrainReport> report = TrainTask(options);
    ASSERT_OK(report);
    EXPECT_EQ(report->task, one.task);
    EXPECT_EQ(report->monitor, MainMetric(one.task));
    ASSERT_TRUE(report->metrics.test.has_value());
    EXPECT_GT(report->metrics.test->Of(one.metric).value_or(-9), one.least);
    EXPECT_EQ(report->metrics.test->vertices, 400u);
    EXPECT_EQ(report->metrics.train->values.size(), MetricsOf(one.task).size());
    EXPECT_EQ(report->test_accuracy, report->metrics.test->Of(Metric::kAccuracy));
    EXPECT_EQ(report->test_accuracy.has_value(), one.task != Task::kRegression);
    // The kept epoch is the best by its monitored metric.
    const EpochReport& best = report->epochs[report->best_epoch - 1];
    for (const EpochReport& epoch : report->epochs) {
      ASSERT_TRUE(epoch.valid_metric.has_value());
      EXPECT_TRUE(LargerIsBetter(report->monitor) ? *epoch.valid_metric <= *best.valid_metric
                                                  : *epoch.valid_metric >= *best.valid_metric);
    }
    // Sampled neighbours give roughly the same value as all neighbours.
    EXPECT_NEAR(*best.valid_metric, *report->metrics.valid->Of(report->monitor), 0.2);
  }
}

TEST_F(TasksTest, PatienceStopsAfterExactlySoManyEpochs) {
  TrainOptions options = Options(60);
  options.learning.patience = 3;
  options.learning.test = false;
  options.learning.schedule = {.kind = ScheduleKind::kStep, .every = 20, .factor = 0.5};
  const Result<TrainReport> report = TrainTask(options);
  ASSERT_OK(report);
  ASSERT_TRUE(report->stopped_early);
  double best = -1;
  std::size_t last = 0;
  for (std::size_t e = 0; e < report->epochs.size(); ++e) {
    EXPECT_LT(e, last + 4);
    if (*report->epochs[e].valid_metric <= best) continue;
    best = *report->epochs[e].valid_metric;
    last = e;
  }
  EXPECT_EQ(report->epochs.size(), last + 1 + 3);
  // Without early stopping the same epochs are trained, and more.
  options.learning.patience = 0;
  const Result<TrainReport> all = TrainTask(options);
  ASSERT_OK(all);
  EXPECT_FALSE(all->stopped_early);
  ASSERT_EQ(all->epochs.size(), 60u);
  for (std::size_t e = 0; e < 60; ++e) {
    EXPECT_DOUBLE_EQ(all->epochs[e].learning_rate, 0.02 * std::pow(0.5, static_cast<int>(e / 20)));
  }
  for (std::size_t e = 0; e < report->epochs.size(); ++e)
    EXPECT_EQ(all->epochs[e].loss, report->epochs[e].loss);
}

TEST_F(TasksTest, EpochsThatAreNotMeasuredLearnTheSame) {
  TrainOptions options = Options(7);
  options.learning.test = false;
  const Result<TrainReport> each = TrainTask(options);
  options.learning.eval_every = 3;
  const Result<TrainReport> some = TrainTask(options);
  ASSERT_OK(each);
  ASSERT_OK(some);
  for (std::size_t e = 0; e < 7; ++e) {
    EXPECT_EQ(some->epochs[e].loss, each->epochs[e].loss);
    EXPECT_EQ(some->epochs[e].valid_metric.has_value(), e == 2 || e == 5 || e == 6);
    EXPECT_EQ(some->epochs[e].valid_metric.value_or(*each->epochs[e].valid_metric),
              each->epochs[e].valid_metric);
  }
  EXPECT_THAT((std::vector<std::uint32_t>{3, 6, 7}), Contains(some->best_epoch));
}

TEST_F(TasksTest, SeedsAreTheTrainingsThatTheyWouldBeAlone) {
  TrainOptions options = Options(3);
  options.learning.seeds = 3;
  options.job.out = *folder_ / "seeds.safetensors";
  const Result<TrainReport> all = TrainTask(options);
  ASSERT_OK(all);
  const TensorFile written = LoadModel(options.job.out);
  ASSERT_EQ(all->seeds.size(), 3u);
  options.learning.seeds = 1;
  options.job.out = *folder_ / "one.safetensors";
  std::vector<double> accuracies;
  std::uint64_t best_seed = 0;
  double best = -1;
  for (std::size_t i = 0; i < 3; ++i) {
    options.learning.seed = 3 + i;
    const Result<TrainReport> one = TrainTask(options);
    ASSERT_OK(one);
    EXPECT_EQ(all->seeds[i].seed, options.learning.seed);
    EXPECT_EQ(all->seeds[i].best_epoch, one->best_epoch);
    EXPECT_EQ(all->seeds[i].metrics.test->Of(Metric::kF1Macro),
              one->metrics.test->Of(Metric::kF1Macro));
    accuracies.push_back(*one->test_accuracy);
    EXPECT_EQ(HaveSameWeights(written, LoadModel(options.job.out)),
              options.learning.seed == all->best_seed);
    const double value = *one->epochs[one->best_epoch - 1].valid_metric;
    if (value > best) best_seed = options.learning.seed;
    best = std::max(best, value);
  }
  EXPECT_EQ(all->best_seed, best_seed);
  const double mean = (accuracies[0] + accuracies[1] + accuracies[2]) / 3;
  double squares = 0;
  for (const double accuracy : accuracies) squares += (accuracy - mean) * (accuracy - mean);
  ASSERT_EQ(all->spread.front().metric, Metric::kAccuracy);
  EXPECT_NEAR(all->spread.front().mean, mean, 1e-12);
  EXPECT_NEAR(all->spread.front().deviation, std::sqrt(squares / 2), 1e-12);
}

TEST_F(TasksTest, AWarmStartBeginsWhereTheFileEnded) {
  TrainOptions options = Options(12);
  options.job.out = *folder_ / "first.safetensors";
  const Result<TrainReport> first = TrainTask(options);
  ASSERT_OK(first);
  TrainOptions second = Options(1);
  second.learning.init = options.job.out;
  second.learning.learning_rate = 1e-12;  // the weights hardly change
  second.job.out = *folder_ / "second.safetensors";
  const Result<TrainReport> warm = TrainTask(second);
  ASSERT_OK(warm);
  EXPECT_NEAR(*warm->test_accuracy, *first->test_accuracy, 0.01);
  EXPECT_LT(warm->epochs[0].loss, first->epochs[0].loss);

  second.model.hidden = 8;
  const Result<TrainReport> refused = TrainTask(second);
  EXPECT_STATUS(refused, kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("head.weight"));
  second.learning.init = *folder_ / "absent.safetensors";
  EXPECT_STATUS(TrainTask(second), kNotFound);
}

TEST_F(TasksTest, AnInterruptedTrainingLeavesItsBestWeights) {
  TrainOptions options = Options(1000);
  options.job.out = *folder_ / "interrupted.safetensors";
  JobControl* self = nullptr;
  std::uint64_t epochs = 0;
  std::string detail;
  JobControl control([&](const JobControl::Progress& progress) {
    detail = progress.detail;
    if (progress.phase == "train" && progress.done >= 8 * 5) self->Cancel();
  });
  self = &control;
  const Result<TrainReport> stopped = rhizome_gnn_entry_v1()->Train(options, control);
  EXPECT_STATUS(stopped, kInterrupted);
  EXPECT_THAT(stopped.error().message(), HasSubstr(options.job.out.string()));
  EXPECT_THAT(detail, HasSubstr("valid accuracy 0."));
  ASSERT_EQ(
      std::sscanf(stopped.error().message().c_str() + stopped.error().message().find("so far, "),
                  "so far, %lu", &epochs),
      1);
  // The weights equal the weights of a training that ends at that epoch.
  const TensorFile left = LoadModel(options.job.out);
  options.learning.epochs = 5;
  options.learning.test = false;
  options.job.out = *folder_ / "ended.safetensors";
  const Result<TrainReport> ended = TrainTask(options);
  ASSERT_OK(ended);
  EXPECT_EQ(ended->best_epoch, epochs);
  EXPECT_TRUE(HaveSameWeights(left, LoadModel(options.job.out)));
}

TEST_F(TasksTest, LikelyMistakesAreSaid) {
  TrainOptions options = Options(1);
  options.learning.test = false;
  const Result<TrainReport> lost = TrainTask(options);
  ASSERT_OK(lost);
  EXPECT_THAT(notes_, Contains(HasSubstr("`out` is not set")));
  EXPECT_THAT(lost->warnings, Contains(HasSubstr("`out` is not set")));
  notes_.clear();
  options.learning.epochs = 4;
  options.job.out = *folder_ / "warned.safetensors";
  ASSERT_OK(TrainTask(options));
  EXPECT_TRUE(notes_.empty());
  options.learning.optimizer.kind = OptimizerKind::kSgd;
  options.learning.learning_rate = 30;
  options.data.labels = "number";
  options.learning.optimizer.clip_norm = 1;
  ASSERT_OK(TrainTask(options));
  EXPECT_THAT(notes_, Contains(HasSubstr("the loss of epoch 2")));
  EXPECT_EQ(notes_.size(), 1u);
}

TEST_F(TasksTest, AClassWithoutTrainingVertexIsSaid) {
  const TempDir folder;
  const PlantedOptions planted;
  PlantedGraph graph = MakePlanted(planted);
  for (std::size_t v = 0; v < graph.labels.size(); ++v)
    if (graph.labels[v] == 2 && graph.split[v] == 0) graph.split[v] = 255;
  ASSERT_OK(WriteStore(folder / "s", planted, graph));
  TrainOptions options = Options(1);
  options.store = folder / "s";
  options.learning.loss.class_weights = "balanced";
  const Result<TrainReport> report = TrainTask(options);
  ASSERT_OK(report);
  EXPECT_THAT(report->warnings, Contains(HasSubstr("1 of 4 classes have no training vertex, "
                                                   "so they will not be learnt: 2")));
}

// Epochs after the best one do not change the result. With a learning rate this high, the
// validation metric gets worse again.
TEST_F(TasksTest, TheWeightsOfTheBestEpochAreKept) {
  TrainOptions options = Options(8);
  options.learning.test = false;
  options.learning.learning_rate = 0.3;
  options.job.out = *folder_ / "best.safetensors";
  Result<TrainReport> report = TrainTask(options);
  ASSERT_OK(report);
  while (report->best_epoch == options.learning.epochs) {
    ASSERT_LT(++options.learning.seed, 20u) << "the last epoch is always the best";
    report = TrainTask(options);
    ASSERT_OK(report);
  }
  const TensorFile best = LoadModel(options.job.out);
  options.learning.epochs = report->best_epoch;
  options.job.out = *folder_ / "ended.safetensors";
  ASSERT_OK(TrainTask(options));
  EXPECT_TRUE(HaveSameWeights(best, LoadModel(options.job.out)));
}

TEST(ClassWeightsTest, BalancedClassesWeighTheSameInAll) {
  Labels labels;
  labels.classes = 4;
  labels.label = {0, 0, 0, 0, 0, 1, 1, 3, 0, 2};
  labels.split.assign(labels.label.size(), Split::kTrain);
  labels.split[9] = Split::kTest;  // class 2 has no training vertex
  const auto weights = ClassWeights("balanced", labels);
  ASSERT_OK(weights);
  // 9 training vertices in 3 classes.
  EXPECT_THAT(*weights, ElementsAre(FloatEq(9.0F / (3 * 6)), FloatEq(9.0F / (3 * 2)), FloatEq(1),
                                    FloatEq(9.0F / (3 * 1))));
}

TEST(ClassWeightsTest, FilesAreReadAsFarAsThereAreClasses) {
  const TempDir dir;
  Labels labels;
  labels.classes = 3;
  const Path file = dir / "weights.txt";
  std::ofstream(file) << "1 2.5\r\n\n\t1e-3";
  const auto weights = ClassWeights(file.string(), labels);
  ASSERT_OK(weights);
  EXPECT_THAT(*weights, ElementsAre(1.0F, 2.5F, 1e-3F));
  const auto refused = [&](const std::string& path, StatusCode code, const char* word) {
    const auto result = ClassWeights(path, labels);
    ASSERT_FALSE(result) << path;
    EXPECT_EQ(result.error().code(), code) << result.error().ToString();
    EXPECT_THAT(result.error().message(), HasSubstr("`class_weights=" + path + "`"));
    EXPECT_THAT(result.error().message(), HasSubstr(word));
  };
  std::ofstream(file) << "1\n2\n";
  refused(file.string(), StatusCode::kInvalidArgument, "2 weights for 3 classes");
  std::ofstream(file) << "1\n2\n3\n4\n5\n6\nno number\n";
  refused(file.string(), StatusCode::kInvalidArgument, "at least 4 weights for 3 classes");
  for (const char* text : {"1 2 x", "1 nan 3", "inf", "0", "-1", "1e-50", "1e50"}) {
    std::ofstream(file) << text;
    refused(file.string(), StatusCode::kInvalidArgument, "must be a number above 0");
  }
  refused((dir / "none.txt").string(), StatusCode::kNotFound, "no such file");
}

// Opening a pipe for reading waits for its writer, which may never come.
TEST(ClassWeightsTest, WhatIsNoFileIsRefusedAtOnce) {
  const TempDir dir;
  Labels labels;
  labels.classes = 3;
  const Path pipe = dir / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const Path& path : {pipe, Path("/dev/zero"), Path(dir / ".")})
    EXPECT_FALSE(ClassWeights(path.string(), labels)) << path;
}

TEST_F(TasksTest, WeightsAndSmoothingChangeWhatIsLearnt) {
  TrainOptions options = Options(2);
  options.learning.test = false;
  const Result<TrainReport> plain = TrainTask(options);
  ASSERT_OK(plain);
  const Path file = *folder_ / "weights.txt";
  std::ofstream(file) << "1 1\n1\n1\n";
  options.learning.loss.class_weights = file.string();
  const Result<TrainReport> ones = TrainTask(options);
  ASSERT_OK(ones);
  EXPECT_NEAR(ones->epochs[1].loss, plain->epochs[1].loss, 1e-5);
  std::ofstream(file) << "1\n1\n1\n50\n";
  const Result<TrainReport> heavy = TrainTask(options);
  ASSERT_OK(heavy);
  EXPECT_GT(std::abs(heavy->epochs[1].loss - plain->epochs[1].loss), 0.01);
  std::ofstream(file) << "1\n1\n0\n1\n";
  EXPECT_STATUS(TrainTask(options), kInvalidArgument);
  std::ofstream(file) << "1\n1\n1\n";
  const Result<TrainReport> few = TrainTask(options);
  EXPECT_STATUS(few, kInvalidArgument);
  EXPECT_THAT(few.error().message(), HasSubstr("3 weights for 4 classes"));
  options.learning.loss = {.class_weights = {}, .label_smoothing = 0.3};
  const Result<TrainReport> smooth = TrainTask(options);
  ASSERT_OK(smooth);
  EXPECT_GT(smooth->epochs[1].loss, plain->epochs[1].loss);
}

TEST_F(TasksTest, ContradictionsAreRefused) {
  const auto refused = [&](const auto& change, const char* word) {
    TrainOptions options = Options(1);
    change(options);
    const Result<TrainReport> report = TrainTask(options);
    EXPECT_STATUS(report, kInvalidArgument);
    EXPECT_THAT(report.error().message(), HasSubstr(word));
  };
  refused([](TrainOptions& o) { o.learning.task = Task::kRegression; }, "array label is int64");
  refused([](TrainOptions& o) { o.learning.task = Task::kBinary; }, "label 2");
  refused([](TrainOptions& o) { o.data.labels = "feat"; }, "both features and labels");
  refused([](TrainOptions& o) { o.learning.monitor = Metric::kRocAuc; }, "`monitor=roc_auc`");
  refused([](TrainOptions& o) { o.data.labels = "flags", o.learning.loss.label_smoothing = 0.1; },
          "smoothing");
  refused(
      [](TrainOptions& o) { o.data.labels = "number", o.learning.loss.class_weights = "balanced"; },
      "class weights");
  refused([](TrainOptions& o) { o.learning.optimizer.momentum = 1; }, "momentum");
  refused([](TrainOptions& o) { o.learning.optimizer.clip_norm = -1; }, "clip");
  refused([](TrainOptions& o) { o.learning.schedule.factor = 1; }, "factor");
  refused([](TrainOptions& o) { o.learning.seeds = 0; }, "seeds");
  refused([](TrainOptions& o) { o.learning.min_delta = -1; }, "min_delta");
  refused([](TrainOptions& o) { o.learning.loss.label_smoothing = 1; }, "smoothing");
  refused([](TrainOptions& o) { o.learning.learning_rate = -1; }, "`learning.learning_rate` is -1");
  refused([](TrainOptions& o) { o.learning.weight_decay = -2; }, "`learning.weight_decay` is -2");
  refused([](TrainOptions& o) { o.minibatch()->eval_fanouts = {5}; },
          "`eval_fanouts` has 1 hops for 2 layers");
  refused(
      [](TrainOptions& o) {
        o.minibatch()->eval_fanouts = {5, 5};
        o.data.sampling.typed_fanouts = {{.type = "edge", .fanouts = {3, 3}}};
      },
      "`eval_fanouts=all`");
  refused([](TrainOptions& o) { o.data.split = "number"; }, "array number is float32; a split");
  refused([](TrainOptions& o) { o.data.split = "flags"; }, "`split=flags:K`");
  refused([](TrainOptions& o) { o.data.split = "flags:3"; },
          "flags has no column 3; it has columns 0 to 2");
  refused([](TrainOptions& o) { o.data.split = "split:1"; },
          "split has no column 1; it has one column, 0");
  refused([](TrainOptions& o) { o.data.split = "split:x"; },
          "'split:x' is neither an array nor NAME:K");
}

/// Returns the value of a metric, or -9 if it is absent.
double ValueIn(const std::vector<MetricValue>& values, Metric metric) {
  for (const MetricValue& one : values)
    if (one.metric == metric) return one.value.value_or(-9);
  return -9;
}

// One minibatch of all training vertices, with all neighbours and no dropout. The training-set
// metrics of an epoch are measured before its step, which is too small to change them.
TEST_F(TasksTest, AnEpochHasTheMetricsOfBothSets) {
  for (const auto& [labels, task] : {std::pair{"label", std::optional<Task>()},
                                     {"binary", std::optional(Task::kBinary)},
                                     {"flags", std::optional<Task>()},
                                     {"number", std::optional<Task>()}}) {
    SCOPED_TRACE(labels);
    TrainOptions options = Options(2);
    options.data.labels = labels;
    options.learning.task = task;
    options.model.dropout = 0;
    options.minibatch()->fanouts = {kAllNeighbors, kAllNeighbors};
    options.minibatch()->batch_size = 1 << 20;
    options.learning.learning_rate = 1e-12;
    options.learning.train_metrics = true;
    const Result<TrainReport> report = TrainTask(options);
    ASSERT_OK(report);
    for (const EpochReport& epoch : report->epochs) {
      EXPECT_GT(epoch.resident_bytes, 1u << 20);
      for (const auto& [of_epoch, at_end] :
           {std::pair{&epoch.train_metrics, &report->metrics.train},
            {&epoch.valid_metrics, &report->metrics.valid}}) {
        ASSERT_EQ(of_epoch->size(), MetricsOf(report->task).size());
        for (const MetricValue& value : *of_epoch)
          EXPECT_NEAR(*value.value, *(*at_end)->Of(value.metric), 5e-3) << MetricName(value.metric);
      }
    }
    EXPECT_EQ(report->seeds[0].course.size(), 2u);
    EXPECT_FALSE(report->weights.empty());
  }
}

TEST_F(TasksTest, MeasuringTheTrainingSetChangesNoWeight) {
  const TempDir folder;
  TrainOptions options = Options(3);
  options.job.out = folder / "without";
  const Result<TrainReport> without = TrainTask(options);
  ASSERT_OK(without);
  EXPECT_TRUE(without->epochs[0].train_metrics.empty());
  options.job.out = folder / "with";
  options.learning.train_metrics = true;
  const Result<TrainReport> with = TrainTask(options);
  ASSERT_OK(with);
  EXPECT_GT(ValueIn(with->epochs[2].train_metrics, Metric::kAccuracy), 0.3);
  EXPECT_TRUE(HaveSameWeights(LoadModel(folder / "without"), LoadModel(folder / "with")));
  // An epoch that skips training vertices has no training-set metrics.
  options.minibatch()->steps = 1;
  const Result<TrainReport> few = TrainTask(options);
  ASSERT_OK(few);
  EXPECT_TRUE(few->epochs[0].train_metrics.empty());
}

// With all neighbours, validation during an epoch gives the same values as evaluation at the end.
TEST_F(TasksTest, TheValidationSetIsMeasuredWithFanoutsOfItsOwn) {
  TrainOptions options = Options(4);
  options.minibatch()->fanouts = {2, 2};
  const Result<TrainReport> few = TrainTask(options);
  ASSERT_OK(few);
  for (const bool some : {false, true}) {
    options.minibatch()->eval_fanouts =
        some ? std::vector<std::int64_t>{1000, kAllNeighbors}
             : std::vector<std::int64_t>{kAllNeighbors, kAllNeighbors};
    const Result<TrainReport> all = TrainTask(options);
    ASSERT_OK(all);
    const EpochReport& best = all->epochs[all->best_epoch - 1];
    EXPECT_NEAR(ValueIn(best.valid_metrics, Metric::kAccuracy), *all->valid_accuracy, 5e-3);
    EXPECT_NEAR(ValueIn(best.valid_metrics, Metric::kF1Macro),
                *all->metrics.valid->Of(Metric::kF1Macro), 5e-3);
    bool differs = false;
    for (std::size_t e = 0; e < few->epochs.size(); ++e) {
      EXPECT_EQ(few->epochs[e].loss, all->epochs[e].loss);
      differs = differs || few->epochs[e].valid_loss != all->epochs[e].valid_loss;
    }
    EXPECT_TRUE(differs);
  }
}

TEST_F(TasksTest, TrainingThatStopsTellsOfItsCompleteEpochs) {
  TrainOptions options = Options(3);
  options.learning.seeds = 2;
  options.learning.train_metrics = true;
  std::optional<TrainReport> told;
  options.job.on_stop = [&](const TrainReport& report) { told = report; };
  const Result<TrainReport> whole = TrainTask(options);
  ASSERT_OK(whole);
  EXPECT_FALSE(told.has_value());
  const std::uint64_t epoch = whole->minibatches;
  for (const std::uint64_t wanted : {epoch - 1, epoch + 1, 2 * epoch, 4 * epoch + 1}) {
    SCOPED_TRACE(wanted);
    told.reset();
    JobControl* self = nullptr;
    std::uint64_t done = 0;
    JobControl control([&](const JobControl::Progress& progress) {
      if (progress.phase == "train" && ++done == wanted) self->Cancel();
    });
    self = &control;
    EXPECT_STATUS(rhizome_gnn_entry_v1()->Train(options, control), kInterrupted);
    EXPECT_EQ(told.has_value(), wanted > epoch);
    if (!told) continue;
    ASSERT_EQ(told->seeds.size(), wanted > 3 * epoch ? 2u : 1u);
    ASSERT_EQ(told->seeds.back().course.size(),
              (wanted - 3 * epoch * (told->seeds.size() - 1)) / epoch);
    for (std::size_t s = 0; s < told->seeds.size(); ++s) {
      for (std::size_t e = 0; e < told->seeds[s].course.size(); ++e) {
        const EpochReport& one = told->seeds[s].course[e];
        EXPECT_EQ(one.loss, whole->seeds[s].course[e].loss);
        EXPECT_EQ(ValueIn(one.train_metrics, Metric::kAccuracy),
                  ValueIn(whole->seeds[s].course[e].train_metrics, Metric::kAccuracy));
      }
    }
    EXPECT_GT(told->best_epoch, 0u);
  }
}

TEST_F(TasksTest, AResumedTrainingHasTheSameCourse) {
  TrainOptions options = Options(3);
  options.learning.train_metrics = true;
  options.job.name = "course";
  const Result<TrainReport> whole = TrainTask(options);
  ASSERT_OK(whole);
  options.job.checkpoint_every = 1;
  JobControl* self = nullptr;
  const std::uint64_t stop = whole->minibatches + 2;
  JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "train" && progress.done == stop) self->Cancel();
  });
  self = &control;
  EXPECT_STATUS(rhizome_gnn_entry_v1()->Train(options, control), kInterrupted);
  options.job.resume = true;
  const Result<TrainReport> resumed = TrainTask(options);
  ASSERT_OK(resumed);
  EXPECT_EQ(resumed->resumed_minibatches, stop);
  for (std::size_t e = 0; e < 3; ++e) {
    const EpochReport &a = whole->epochs[e], &b = resumed->epochs[e];
    EXPECT_EQ(ValueIn(a.valid_metrics, Metric::kF1Macro),
              ValueIn(b.valid_metrics, Metric::kF1Macro));
    ASSERT_FALSE(b.train_metrics.empty()) << e;  // also for the epoch that was interrupted
    EXPECT_EQ(ValueIn(a.train_metrics, Metric::kF1Macro),
              ValueIn(b.train_metrics, Metric::kF1Macro));
  }
}

TEST_F(TasksTest, WithoutAValidationSetThereIsNothingToWaitFor) {
  const TempDir folder;
  const PlantedOptions planted;
  PlantedGraph graph = MakePlanted(planted);
  std::replace(graph.split.begin(), graph.split.end(), std::uint8_t{1}, std::uint8_t{2});
  ASSERT_OK(WriteStore(folder / "s", planted, graph));
  TrainOptions options = Options(2);
  options.store = folder / "s";
  const Result<TrainReport> report = TrainTask(options);
  ASSERT_OK(report);
  EXPECT_EQ(report->best_epoch, 2u);
  EXPECT_FALSE(report->epochs[1].valid_metric.has_value());
  EXPECT_FALSE(report->metrics.valid.has_value());
  options.learning.patience = 1;
  EXPECT_STATUS(TrainTask(options), kInvalidArgument);
  options.learning.patience = 0;
  options.learning.schedule.kind = ScheduleKind::kPlateau;
  EXPECT_STATUS(TrainTask(options), kInvalidArgument);
}

TEST_F(TasksTest, AMetricThatTheValidationSetCannotHaveIsRefused) {
  const TempDir folder;
  const PlantedOptions planted;
  PlantedGraph graph = MakePlanted(planted);
  for (std::size_t v = 0; v < graph.labels.size(); ++v)
    graph.labels[v] = graph.split[v] == 1 ? 1 : graph.labels[v] / 2;
  ASSERT_OK(WriteStore(folder / "s", planted, graph));
  TrainOptions options = Options(2);
  options.store = folder / "s";
  options.learning.task = Task::kBinary;
  const Result<TrainReport> refused = TrainTask(options);
  EXPECT_STATUS(refused, kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("no roc_auc"));
  EXPECT_THAT(refused.error().message(), HasSubstr("one class"));
  options.learning.monitor = Metric::kLoss;
  const Result<TrainReport> report = TrainTask(options);
  ASSERT_OK(report);
  EXPECT_FALSE(report->metrics.valid->Of(Metric::kRocAuc).has_value());
}

TEST_F(TasksTest, AVertexWithABadFeatureIsNamed) {
  const TempDir folder;
  const PlantedOptions planted;
  PlantedGraph graph = MakePlanted(planted);
  graph.features[77 * planted.dim + 3] = std::nanf("");
  ASSERT_OK(WriteStore(folder / "s", planted, graph));
  TrainOptions options = Options(3);
  options.store = folder / "s";
  const Result<TrainReport> refused = TrainTask(options);
  EXPECT_STATUS(refused, kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("vertex 77"));
  EXPECT_THAT(refused.error().message(), HasSubstr("array feat"));
}

TEST_F(TasksTest, AVertexWithABadLabelOrSplitIsNamed) {
  const PlantedOptions planted;
  const auto refused = [&](const auto& change, const std::vector<const char*>& words) {
    const TempDir folder;
    PlantedGraph graph = MakePlanted(planted);
    change(graph);
    ASSERT_OK(WriteStore(folder / "s", planted, graph));
    TrainOptions options = Options(1);
    options.store = folder / "s";
    const Result<TrainReport> report = TrainTask(options);
    EXPECT_STATUS(report, kInvalidArgument);
    for (const char* word : words) EXPECT_THAT(report.error().message(), HasSubstr(word));
  };
  refused([](PlantedGraph& g) { g.labels[77] = -1, g.split[77] = 2; },
          {"array label", "vertex 77", "array split", "test set", "255"});
  refused([](PlantedGraph& g) { g.labels[77] = -2; }, {"array label, vertex 77", "label -2"});
  refused([](PlantedGraph& g) { g.split[77] = 7; }, {"array split, vertex 77", "a split of 7"});
  refused([](PlantedGraph& g) { std::fill(g.split.begin(), g.split.end(), std::uint8_t{2}); },
          {"array split puts no vertex into the training set"});
}

}  // namespace
}  // namespace rhizome
