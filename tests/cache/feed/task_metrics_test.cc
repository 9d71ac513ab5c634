#include "rhizome/task_metrics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "cache/feed/compute_metrics.h"
#include "testing/testing.h"

// Tests of evaluation metrics against their definitions: rankings (ROC AUC, average precision),
// classes, regression errors, agreement tables, missing labels and undefined values. The last test
// writes cases that task_metrics_ci_test.py compares with scikit-learn.

namespace rhizome {
namespace {

using ::testing::HasSubstr;

/// Random scores with few distinct values, so that many are equal, and labels that correlate with
/// them.
struct Scored {
  std::vector<float> scores;
  std::vector<std::uint8_t> labels;
};

Scored MakeScored(std::size_t n, int values, double missing, std::mt19937_64& random) {
  std::normal_distribution<double> noise;
  std::uniform_real_distribution<double> unit;
  Scored made;
  for (std::size_t i = 0; i < n; ++i) {
    const bool positive = unit(random) < 0.3;
    const double score = noise(random) + (positive ? 0.7 : -0.2);
    made.scores.push_back(static_cast<float>(std::round(score * values) / values));
    made.labels.push_back(unit(random) < missing ? kMissingFlag : positive ? 1 : 0);
  }
  return made;
}

/// Returns the ROC AUC by its definition: the share of pairs (positive, negative) in the right
/// order.
std::optional<double> PairsInOrder(const Scored& made) {
  double ordered = 0, pairs = 0;
  for (std::size_t i = 0; i < made.scores.size(); ++i) {
    for (std::size_t j = 0; j < made.scores.size(); ++j) {
      if (made.labels[i] != 1 || made.labels[j] != 0) continue;
      ++pairs;
      ordered += made.scores[i] > made.scores[j] ? 1 : made.scores[i] == made.scores[j] ? 0.5 : 0;
    }
  }
  return pairs == 0 ? std::nullopt : std::optional<double>(ordered / pairs);
}

/// Returns the average precision by its definition: the sum over all thresholds of the precision
/// times the increase in recall.
std::optional<double> PrecisionOverRecall(const Scored& made) {
  std::set<float, std::greater<>> thresholds(made.scores.begin(), made.scores.end());
  double positives = 0;
  for (const std::uint8_t label : made.labels) positives += label == 1 ? 1 : 0;
  if (positives == 0) return std::nullopt;
  double sum = 0, before = 0;
  for (const float threshold : thresholds) {
    double right = 0, answered = 0;
    for (std::size_t i = 0; i < made.scores.size(); ++i) {
      if (made.labels[i] == kMissingFlag || made.scores[i] < threshold) continue;
      ++answered;
      right += made.labels[i];
    }
    if (answered == 0) continue;
    sum += (right / positives - before) * (right / answered);
    before = right / positives;
  }
  return sum;
}

void ExpectNear(const std::optional<double>& value, const std::optional<double>& wanted) {
  ASSERT_EQ(value.has_value(), wanted.has_value());
  EXPECT_NEAR(value.value_or(-1), wanted.value_or(-1), 1e-12);
}

TEST(TaskMetricsTest, RankingsAreCountedPairByPair) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::size_t n : {1, 2, 3, 10, 200}) {
    for (const int values : {1, 2, 10, 1000000}) {
      for (const double missing : {0.0, 0.4}) {
        const Scored made = MakeScored(n, values, missing, random);
        ExpectNear(RocAuc(made.scores, made.labels), PairsInOrder(made));
        ExpectNear(AveragePrecision(made.scores, made.labels), PrecisionOverRecall(made));
      }
    }
  }
}

TEST(TaskMetricsTest, ATieIsHalfAPair) {
  const std::vector<float> scores = {1, 1};
  EXPECT_EQ(RocAuc(scores, std::vector<std::uint8_t>{1, 0}), 0.5);
  EXPECT_EQ(RocAuc(scores, std::vector<std::uint8_t>{0, 1}), 0.5);
  EXPECT_EQ(AveragePrecision(scores, std::vector<std::uint8_t>{1, 0}), 0.5);
}

TEST(TaskMetricsTest, ClassesAreCounted) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::size_t kClasses = 5, kVertices = 300;
  std::vector<float> answers;
  std::vector<std::int32_t> labels;
  for (std::size_t v = 0; v < kVertices; ++v) {  // class 4 is neither a label nor a prediction
    labels.push_back(static_cast<std::int32_t>(random() % 4));
    answers.push_back(static_cast<float>(random() % 2 == 0 ? labels.back() : random() % 4));
  }
  const SplitMetrics metrics = MulticlassMetrics(answers, labels, kClasses);
  EXPECT_EQ(metrics.vertices, kVertices);
  double correct = 0, f1_sum = 0;
  for (std::size_t c = 0; c < kClasses; ++c) {
    double both = 0, is = 0, said = 0;
    for (std::size_t v = 0; v < kVertices; ++v) {
      const bool of = static_cast<std::size_t>(labels[v]) == c;
      const bool answer = static_cast<std::size_t>(answers[v]) == c;
      both += of && answer ? 1 : 0;
      is += of ? 1 : 0;
      said += answer ? 1 : 0;
      if (c > 0) continue;
      correct += static_cast<float>(labels[v]) == answers[v] ? 1 : 0;
    }
    const ClassFigures& figures = metrics.classes[c];
    ASSERT_EQ(figures.f1().has_value(), c < 4);
    if (c == 4) continue;
    EXPECT_DOUBLE_EQ(*figures.precision(), both / said);
    EXPECT_DOUBLE_EQ(*figures.recall(), both / is);
    EXPECT_DOUBLE_EQ(*figures.f1(), 2 * both / (said + is));
    f1_sum += *figures.f1();
  }
  EXPECT_DOUBLE_EQ(*metrics.Of(Metric::kAccuracy), correct / kVertices);
  EXPECT_DOUBLE_EQ(*metrics.Of(Metric::kF1Micro), correct / kVertices);
  EXPECT_DOUBLE_EQ(*metrics.Of(Metric::kF1Macro), f1_sum / 4);
  EXPECT_FALSE(metrics.Of(Metric::kRocAuc).has_value());
  for (std::size_t v = 0; v < kVertices; ++v) {
    EXPECT_GT(metrics.confusion[static_cast<std::size_t>(labels[v]) * kClasses +
                                static_cast<std::size_t>(answers[v])],
              0u);
  }
}

TEST(TaskMetricsTest, MissingLabelsCountNowhere) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::size_t kColumns = 3, kVertices = 120;
  const Scored all = MakeScored(kVertices * kColumns, 4, 0.3, random);
  const SplitMetrics metrics = MultilabelMetrics(all.scores, all.labels, kColumns);
  double right = 0, labelled = 0, both = 0, is = 0, said = 0, auc = 0;
  for (std::size_t v = 0; v < kVertices; ++v) {
    bool known = false, good = true;
    for (std::size_t c = 0; c < kColumns; ++c) {
      const std::uint8_t label = all.labels[v * kColumns + c];
      if (label == kMissingFlag) continue;
      const bool answer = all.scores[v * kColumns + c] > 0;
      known = true;
      good = good && answer == (label == 1);
      both += answer && label == 1 ? 1 : 0;
      is += label;
      said += answer ? 1 : 0;
    }
    labelled += known ? 1 : 0;
    right += known && good ? 1 : 0;
  }
  for (std::size_t c = 0; c < kColumns; ++c) {
    Scored column;
    for (std::size_t v = 0; v < kVertices; ++v) {
      column.scores.push_back(all.scores[v * kColumns + c]);
      column.labels.push_back(all.labels[v * kColumns + c]);
    }
    auc += *PairsInOrder(column) / kColumns;
  }
  EXPECT_DOUBLE_EQ(*metrics.Of(Metric::kAccuracy), right / labelled);
  EXPECT_DOUBLE_EQ(*metrics.Of(Metric::kF1Micro), 2 * both / (is + said));
  EXPECT_NEAR(*metrics.Of(Metric::kRocAuc), auc, 1e-12);
}

TEST(TaskMetricsTest, ErrorsOfNumbersLeaveOutWhatIsMissing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> targets = {1, 10, 3, nan, 5, 30};
  const std::vector<float> scores = {2, 10, 3, 7, 3, 20};
  const SplitMetrics metrics = RegressionMetrics(scores, targets, 2);
  // First column: errors 1, 0, 2 for targets 1, 3, 5. Second column: 0, 10 for targets 10, 30.
  EXPECT_DOUBLE_EQ(*metrics.Of(Metric::kMae), (1.0 + 5) / 2);
  EXPECT_DOUBLE_EQ(*metrics.Of(Metric::kRmse), (std::sqrt(5.0 / 3) + std::sqrt(50.0)) / 2);
  EXPECT_DOUBLE_EQ(*metrics.Of(Metric::kR2), ((1 - 5.0 / 8) + (1 - 100.0 / 200)) / 2);
  ASSERT_EQ(metrics.columns.size(), 2u);
  EXPECT_EQ(metrics.columns[0].support, 3u);
  EXPECT_EQ(metrics.columns[1].support, 2u);
  EXPECT_DOUBLE_EQ(*metrics.columns[0].mae, 1);
  EXPECT_DOUBLE_EQ(*metrics.columns[1].rmse, std::sqrt(50.0));
  EXPECT_DOUBLE_EQ(*metrics.columns[1].r2, 1 - 100.0 / 200);
}

TEST(TaskMetricsTest, AgreementCountsTargetsAgainstAnswers) {
  constexpr std::size_t kBins = Agreement::kBins;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Two columns. All values of the first are in [0, 24], so that a bin is one unit wide.
  const std::vector<float> targets = {0, 5, 24, 5, 3.5F, nan, nan, 5};
  const std::vector<float> scores = {0.5F, 5, 7, 5, 24, 5, 9, 5};
  const SplitMetrics metrics = RegressionMetrics(scores, targets, 2);
  ASSERT_EQ(metrics.agreements.size(), 2u);
  const Agreement& first = metrics.agreements[0];
  EXPECT_EQ(first.low, 0);
  EXPECT_EQ(first.high, 24);
  std::vector<std::uint64_t> counts(kBins * kBins);
  counts[0] = 1;               // target 0, prediction 0.5
  counts[23 * kBins + 7] = 1;  // the highest value belongs to the last bin
  counts[3 * kBins + 23] = 1;  // target 3.5
  EXPECT_EQ(first.counts, counts);
  const Agreement& second = metrics.agreements[1];  // a single distinct value
  EXPECT_LT(second.low, 5);
  EXPECT_GT(second.high, 5);
  EXPECT_EQ(std::count(second.counts.begin(), second.counts.end(), 3u), 1);
  const std::vector<float> wide(40, 1.0F);
  EXPECT_EQ(RegressionMetrics(wide, wide, 40).agreements.size(), SplitMetrics::kMaxAgreements);
  EXPECT_EQ(RegressionMetrics(wide, wide, 40).columns.size(), 40u);
}

void ExpectAbsent(const SplitMetrics& metrics, Metric metric, const char* why) {
  for (const MetricValue& value : metrics.values) {
    if (value.metric != metric) continue;
    EXPECT_FALSE(value.value.has_value());
    EXPECT_THAT(value.reason, HasSubstr(why));
    return;
  }
  FAIL() << "no " << MetricName(metric);
}

TEST(TaskMetricsTest, WhatIsUndefinedSaysWhy) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> scores = {1, 2};
  ExpectAbsent(BinaryMetrics(scores, std::vector<std::uint8_t>{1, 1}), Metric::kRocAuc,
               "one class");
  ExpectAbsent(BinaryMetrics(scores, std::vector<std::uint8_t>{0, 0}), Metric::kAveragePrecision,
               "class 1");
  ExpectAbsent(MultilabelMetrics(scores, std::vector<std::uint8_t>{255, 255}, 1), Metric::kF1Micro,
               "label");
  ExpectAbsent(RegressionMetrics(scores, std::vector<float>{3, 3}, 1), Metric::kR2, "equal");
  ExpectAbsent(RegressionMetrics(scores, std::vector<float>{nan, nan}, 1), Metric::kMae, "missing");
  for (const MetricValue& value : MulticlassMetrics({}, {}, 3).values)
    EXPECT_THAT(value.reason, HasSubstr("no vertex"));
  const std::vector<float> bad = {1, nan};
  for (const MetricValue& value : BinaryMetrics(bad, std::vector<std::uint8_t>{1, 0}).values) {
    EXPECT_FALSE(value.value.has_value());
    EXPECT_THAT(value.reason, HasSubstr("1 vertices are not numbers"));
  }
}

TEST(TaskMetricsTest, WordsAreReadAsTheyAreWritten) {
  for (const Task task : {Task::kMulticlass, Task::kMultilabel, Task::kBinary, Task::kRegression}) {
    EXPECT_EQ(ParseTask(TaskName(task)), task);
    const std::vector<Metric> metrics = MetricsOf(task);
    EXPECT_THAT(metrics, ::testing::Contains(MainMetric(task)));
    for (const Metric metric : metrics) EXPECT_EQ(ParseMetric(MetricName(metric)), metric);
  }
  EXPECT_EQ(ParseTask(TaskName(Task::kLink)), Task::kLink);
  EXPECT_FALSE(ParseTask("edge").has_value());
  EXPECT_FALSE(ParseMetric("auc").has_value());
}

nlohmann::json CaseOf(const char* task, const auto& scores, const auto& labels, std::size_t columns,
                      const SplitMetrics& metrics) {
  nlohmann::json json = {
      {"task", task}, {"scores", scores}, {"labels", labels}, {"columns", columns}};
  for (const MetricValue& value : metrics.values)
    json["metrics"][std::string(MetricName(value.metric))] = value.value.value();
  for (const ClassFigures& figures : metrics.classes) json["f1"].push_back(figures.f1().value());
  json["confusion"] = metrics.confusion;
  return json;
}

// task_metrics_ci_test.py reads this file and compares the metrics with scikit-learn's.
TEST(TaskMetricsTest, CasesForAnotherLibrary) {
  std::mt19937_64 random(testing::TestSeed());
  std::normal_distribution<float> noise;
  nlohmann::json cases = nlohmann::json::array();
  for (const std::size_t n : {400, 3000}) {
    for (const int values : {2, 7, 1000}) {
      const Scored binary = MakeScored(n, values, 0, random);
      cases.push_back(CaseOf("binary", binary.scores, binary.labels, 1,
                             BinaryMetrics(binary.scores, binary.labels)));
      const Scored several = MakeScored(5 * n, values, 0, random);
      cases.push_back(CaseOf("multilabel", several.scores, several.labels, 5,
                             MultilabelMetrics(several.scores, several.labels, 5)));
      std::vector<float> answers, targets, predictions;
      std::vector<std::int32_t> classes;
      for (std::size_t i = 0; i < n; ++i) {
        classes.push_back(static_cast<std::int32_t>(random() % 6));
        answers.push_back(static_cast<float>(random() % 3 == 0 ? random() % 6 : classes.back()));
      }
      cases.push_back(
          CaseOf("multiclass", answers, classes, 6, MulticlassMetrics(answers, classes, 6)));
      for (std::size_t i = 0; i < 3 * n; ++i) {
        targets.push_back(noise(random) * 10 + 1000);
        predictions.push_back(targets.back() + noise(random));
      }
      cases.push_back(CaseOf("regression", predictions, targets, 3,
                             RegressionMetrics(predictions, targets, 3)));
    }
  }
  EXPECT_EQ(cases.size(), 24u);
  const char* const path = std::getenv("RHIZOME_TASK_METRICS");
  if (path != nullptr) std::ofstream(path) << cases.dump();
}

}  // namespace
}  // namespace rhizome
