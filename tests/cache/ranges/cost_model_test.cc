#include "cache/ranges/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "cache/ranges/cost_meter.h"
#include "cache/ranges/prediction_error.h"
#include "cache/ranges/range_cut.h"
#include "testing/testing.h"

// Tests of the cost model of ranges of rows: features of a range, measured costs, non-negative
// least squares against brute force, prediction errors, saved and damaged models, and cutting a
// sequence into ranges of equal cost.

namespace rhizome {
namespace {

using Squares = std::array<FeatureVector, kRangeFeatures>;

TEST(RangeFeaturesTest, EqualThoseOfSetsOfRunsAndOfAListOfReads) {
  std::mt19937_64 random(testing::TestSeed());
  const RangeFeatureOptions options{.columns = 24,
                                    .line = 16,
                                    .page_bytes = 24 * 4 * 10,
                                    .pages_near = 7,
                                    .near_bytes = 24 * 4 * 50,
                                    .far_bytes = 24 * 4 * 400};
  std::vector<std::uint32_t> reads;
  RangeFeatures features(options);
  std::vector<FeatureVector> expected;
  for (int vertex = 0; vertex < 300; ++vertex) {
    std::set<std::uint32_t> set;
    for (std::uint64_t i = random() % 60; i > 0; --i)
      set.insert(static_cast<std::uint32_t>(random() % (1 + random() % 200)));
    features.Add(std::vector<std::uint32_t>(set.begin(), set.end()));
    FeatureVector of_vertex = {1, static_cast<double>(set.size())};
    of_vertex[5] = set.empty() ? 0 : 1;
    for (const std::uint32_t first : set) {
      const auto last = reads.end() - std::min<std::ptrdiff_t>(7, std::ssize(reads));
      of_vertex[6] += std::none_of(last, reads.end(),
                                   [&](std::uint32_t row) { return row / 10 == first / 10; });
      const auto is_far = [&](std::ptrdiff_t most) {
        const auto kept = reads.end() - std::min(most, std::ssize(reads));
        return std::find(kept, reads.end(), first) == reads.end() ? 1 : 0;
      };
      of_vertex[7] += is_far(50);
      of_vertex[8] += is_far(400);
      reads.push_back(first);
      if (first > 0 && set.count(first - 1) != 0) continue;
      std::uint32_t length = 0;
      while (set.count(first + length) != 0) ++length;
      of_vertex[2] += 1;
      of_vertex[3] += std::ceil(length / 16.0);
      of_vertex[4] += std::ceil(length * 24 / 16.0);
    }
    expected.push_back(of_vertex);
  }
  ASSERT_EQ(features.vertices(), 300u);
  for (int round = 0; round < 100; ++round) {
    const std::size_t begin = random() % 301;
    const std::size_t end = begin + random() % (301 - begin);
    FeatureVector sum = {};
    for (std::size_t v = begin; v < end; ++v) {
      for (std::size_t f = 0; f < kRangeFeatures; ++f) sum[f] += expected[v][f];
    }
    EXPECT_EQ(features.Of(begin, end), sum);
  }
}

TEST(RangeFeaturesTest, SumsByStepsAreThoseOfEveryVertex) {
  std::mt19937_64 random(testing::TestSeed());
  RangeFeatures each({.columns = 8});
  RangeFeatures stepped({.columns = 8, .step = 10});
  const std::size_t vertices = 100 + random() % 200;
  for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
    std::set<std::uint32_t> set;
    for (std::uint64_t i = random() % 20; i > 0; --i)
      set.insert(static_cast<std::uint32_t>(random() % 500));
    const std::vector<std::uint32_t> list(set.begin(), set.end());
    each.Add(list);
    stepped.Add(list);
  }
  ASSERT_EQ(stepped.vertices(), vertices);
  for (std::size_t begin = 0; begin <= vertices; begin += 10) {
    EXPECT_EQ(stepped.Of(begin, vertices), each.Of(begin, vertices));
    for (std::size_t end = begin; end <= vertices; end += 10)
      EXPECT_EQ(stepped.Of(begin, end), each.Of(begin, end));
  }
}

// A list grouped by relation is ascending only within each group.
TEST(RangeFeaturesTest, GroupsOfAListAreReadLikeListsOfTheirOwn) {
  std::mt19937_64 random(testing::TestSeed());
  const RangeFeatureOptions options{.columns = 16, .page_bytes = 640, .pages_near = 3};
  RangeFeatures grouped(options);
  RangeFeatures separate(options);
  const std::size_t vertices = 1 + random() % 100;
  for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
    std::vector<std::uint32_t> list;
    for (std::uint64_t groups = random() % 5; groups > 0; --groups) {
      std::set<std::uint32_t> set;
      for (std::uint64_t i = 1 + random() % 6; i > 0; --i)
        set.insert(static_cast<std::uint32_t>(random() % (1 + random() % 5000)));
      if (!list.empty())
        set.erase(list.back() + 1), set.erase(list.back());  // would continue a run
      if (set.empty()) continue;
      separate.Add(std::vector<std::uint32_t>(set.begin(), set.end()));
      list.insert(list.end(), set.begin(), set.end());
    }
    grouped.Add(list);
  }
  FeatureVector expected = separate.Of(0, separate.vertices());
  const FeatureVector got = grouped.Of(0, vertices);
  for (const std::size_t of_lists : {std::size_t{0}, std::size_t{5}})  // kVertex, kLinked
    expected[of_lists] = got[of_lists];
  EXPECT_EQ(got, expected);
}

TEST(CostMeterTest, BlocksGoTogetherUntilTheyEndAtAStepAndAreLongEnough) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t least = random() % 100;
    CostMeter meter(16, least);
    std::vector<std::uint64_t> ends = {0};
    double sum = 0;
    for (int block = 0; block < 40; ++block) {
      std::uint64_t begin = ends.back();
      if (begin % 16 == 0 && random() % 8 == 0) begin += 16;  // a chunk that was done before
      const std::uint64_t end = begin + 1 + random() % 40;
      meter.Add({begin, end, 1.0 + block});
      sum += 1.0 + block;
      ends.push_back(end);
    }
    std::uint64_t last = 0;
    double total = 0;
    for (std::size_t i = 0; i < meter.ranges().size(); ++i) {
      const MeasuredRange& range = meter.ranges()[i];
      const bool is_last = i + 1 == meter.ranges().size();
      EXPECT_GE(range.begin, last);
      EXPECT_EQ(range.begin % 16, 0u);
      EXPECT_TRUE(is_last || range.end % 16 == 0);
      EXPECT_TRUE(is_last || range.end - range.begin >= least ||
                  meter.ranges()[i + 1].begin > range.end);
      last = range.end;
      total += range.cpu_seconds;
    }
    EXPECT_EQ(last, ends.back());
    EXPECT_EQ(total, sum);
  }
}

TEST(PredictionErrorTest, EqualsFiguresThatWereWorkedOutByHand) {
  PredictionError error;
  EXPECT_EQ(error.Error(), 0);
  EXPECT_EQ(error.R2(), 0);
  error.Add(2, 1);
  error.Add(2, 2);
  error.Add(3, 6);
  EXPECT_DOUBLE_EQ(error.Error(), 4.0 / 9);
  EXPECT_DOUBLE_EQ(error.R2(), 1 - 10.0 / 14);
  EXPECT_DOUBLE_EQ(MaxOverMean({1, 2, 6}), 2);
  EXPECT_EQ(MaxOverMean({0, 0}), 1);
}

double Objective(const Squares& a, const FeatureVector& b, const FeatureVector& w) {
  double value = 0;
  for (std::size_t f = 0; f < kRangeFeatures; ++f) {
    for (std::size_t g = 0; g < kRangeFeatures; ++g) value += w[f] * a[f][g] * w[g];
    value -= 2 * b[f] * w[f];
  }
  return value;
}

/// Returns the minimum objective over all sets of features that may be positive. Solves each set by
/// Cramer's rule and considers the solutions without negative weights.
double BruteForce(const Squares& a, const FeatureVector& b) {
  const auto determinant = [](std::vector<std::vector<double>> m) {
    double product = 1;
    for (std::size_t i = 0; i < m.size(); ++i) {
      std::size_t pivot = i;
      for (std::size_t row = i; row < m.size(); ++row) {
        if (std::abs(m[row][i]) > std::abs(m[pivot][i])) pivot = row;
      }
      if (pivot != i) product = -product;
      std::swap(m[i], m[pivot]);
      product *= m[i][i];
      if (m[i][i] == 0) return 0.0;
      for (std::size_t row = i + 1; row < m.size(); ++row) {
        const double factor = m[row][i] / m[i][i];
        for (std::size_t column = i; column < m.size(); ++column)
          m[row][column] -= factor * m[i][column];
      }
    }
    return product;
  };
  double least = 0;  // no feature
  for (unsigned set = 1; set < 1U << kRangeFeatures; ++set) {
    std::vector<std::size_t> free;
    for (std::size_t f = 0; f < kRangeFeatures; ++f) {
      if ((set >> f & 1) != 0) free.push_back(f);
    }
    std::vector<std::vector<double>> m;
    for (const std::size_t f : free) {
      auto& row = m.emplace_back();
      for (const std::size_t g : free) row.push_back(a[f][g]);
    }
    const double all = determinant(m);
    FeatureVector w = {};
    bool is_possible = all != 0;
    for (std::size_t i = 0; i < free.size() && is_possible; ++i) {
      auto replaced = m;
      for (std::size_t row = 0; row < free.size(); ++row) replaced[row][i] = b[free[row]];
      w[free[i]] = determinant(replaced) / all;
      is_possible = w[free[i]] >= 0;
    }
    if (is_possible) least = std::min(least, Objective(a, b, w));
  }
  return least;
}

TEST(CostModelTest, WeightsEqualThoseOfTryingAllSetsOfFeatures) {
  std::mt19937_64 random(testing::TestSeed());
  std::normal_distribution<double> normal;
  for (int round = 0; round < 60; ++round) {
    Squares a = {};
    FeatureVector b = {};
    for (int sample = 0; sample < 18; ++sample) {
      FeatureVector x;
      for (double& value : x) value = normal(random);
      const double y = normal(random);
      for (std::size_t f = 0; f < kRangeFeatures; ++f) {
        for (std::size_t g = 0; g < kRangeFeatures; ++g) a[f][g] += x[f] * x[g];
        b[f] += x[f] * y;
      }
    }
    for (std::size_t f = 0; f < kRangeFeatures; ++f) a[f][f] += 0.01;
    const FeatureVector w = SolveNonNegative(a, b);
    for (const double weight : w) ASSERT_GE(weight, 0);
    const double least = BruteForce(a, b);
    ASSERT_NEAR(Objective(a, b, w), least, 1e-7 * (1 + std::abs(least))) << "round " << round;
  }
}

/// Returns random features of a range, of realistic sizes.
FeatureVector DrawFeatures(std::mt19937_64& random) {
  const double vertices = 100 + static_cast<double>(random() % 10000);
  const double edges = vertices * (1 + static_cast<double>(random() % 40));
  const double runs = edges * (0.3 + static_cast<double>(random() % 1000) / 2000);
  const double far = runs * (0.1 + static_cast<double>(random() % 1000) / 2000);
  return {vertices, edges,      runs, runs + edges / 16, runs + edges * 8, vertices * 0.7,
          runs,     runs * 0.9, far};
}

TEST(CostModelTest, LearnsALinearCostAndPredictsIt) {
  std::mt19937_64 random(testing::TestSeed());
  const FeatureVector truth = {2e-8, 0, 5e-9, 0, 3e-9, 0, 0, 0, 4e-8};
  const auto cost_of = [&](const FeatureVector& x) {
    double cost = 0;
    for (std::size_t f = 0; f < kRangeFeatures; ++f) cost += truth[f] * x[f];
    return cost;
  };
  CostModel model;
  for (int i = 0; i < 200; ++i) {
    const FeatureVector x = DrawFeatures(random);
    ASSERT_TRUE(model.Learn(x, cost_of(x)).ok());
  }
  EXPECT_EQ(model.measurements(), 200u);
  for (int i = 0; i < 50; ++i) {
    const FeatureVector x = DrawFeatures(random);
    EXPECT_NEAR(model.Predict(x), cost_of(x), 0.01 * cost_of(x));
  }
}

TEST(CostModelTest, ForgetsWhatIsNoLongerTrue) {
  std::mt19937_64 random(testing::TestSeed());
  CostModel model;
  for (const double per_edge : {1.0, 3.0}) {
    for (int i = 0; i < 400; ++i) {
      const FeatureVector x = DrawFeatures(random);
      ASSERT_TRUE(model.Learn(x, per_edge * x[1]).ok());
    }
    const FeatureVector x = DrawFeatures(random);
    EXPECT_NEAR(model.Predict(x), per_edge * x[1], 0.05 * per_edge * x[1]);
  }
}

TEST(CostModelTest, ItsErrorIsOfSharesThatItPredictedBeforeItLearnedThem) {
  const FeatureVector one = {1};
  const FeatureVector three = {3};
  CostModel model;
  EXPECT_FALSE(model.Error().has_value());
  ASSERT_TRUE(model.Learn({one, three}, {1, 3}).ok());
  EXPECT_FALSE(model.Error().has_value());  // there was no prediction before
  ASSERT_TRUE(model.Learn({one, three}, {10, 30}).ok());
  EXPECT_NEAR(*model.Error(), 0, 1e-12);  // a uniform slowdown is no error
  ASSERT_TRUE(model.Learn({one, three}, {20, 20}).ok());
  // The predicted shares are a quarter and three quarters: 10 and 30, which is off by 20 of 40.
  EXPECT_NEAR(*model.Error(), 20 / (40 * CostModel::kErrorForgetting + 40), 1e-9);
  ASSERT_TRUE(model.Learn(one, 100).ok());  // a single measurement has no shares
  EXPECT_NEAR(*model.Error(), 20 / (40 * CostModel::kErrorForgetting + 40), 1e-9);
  const Result<CostModel> loaded = CostModel::FromState(model.State());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->Error(), model.Error());
  EXPECT_EQ(loaded->weights(), model.weights());
}

TEST(CostModelTest, RefusesWhatIsNoCost) {
  CostModel model;
  EXPECT_EQ(model.Learn(FeatureVector{1}, -1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(model.Learn(FeatureVector{1}, std::nan("")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(model.Learn(FeatureVector{-1}, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(model.measurements(), 0u);
}

TEST(CostModelTest, IsSavedAndLoadedAndDamageIsNamed) {
  std::mt19937_64 random(testing::TestSeed());
  const testing::TempDir folder;
  const Path path = folder.path() / "costs.json";
  CostModels models;
  for (const char* const name : {"sum/128/in", "sum/256/out"}) {
    for (int i = 0; i < 20; ++i) {
      const FeatureVector x = DrawFeatures(random);
      ASSERT_TRUE(models[name].Learn(x, 1e-9 * x[4] + 1e-8 * x[0]).ok());
    }
  }
  ASSERT_TRUE(SaveCostModels(models, path).ok());
  const Result<CostModels> loaded = LoadCostModels(FileSystem::Posix(), path);
  ASSERT_TRUE(loaded) << loaded.error().message();
  ASSERT_EQ(loaded->size(), 2u);
  for (const auto& [name, model] : models) {
    EXPECT_EQ(loaded->at(name).weights(), model.weights());
    EXPECT_EQ(loaded->at(name).measurements(), 20u);
  }
  Result<std::vector<std::byte>> bytes = ReadWholeFile(FileSystem::Posix(), path, 1 << 20);
  ASSERT_TRUE(bytes);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> damaged = *bytes;
    std::byte& byte = damaged[random() % damaged.size()];
    byte ^= static_cast<std::byte>(1U << random() % 8);
    const Path other = folder.path() / fmt::format("damaged {}.json", round);
    ASSERT_TRUE(WriteWholeFile(FileSystem::Posix(), other, damaged).ok());
    const Result<CostModels> wrong = LoadCostModels(FileSystem::Posix(), other);
    if (wrong) {  // the flip changed white space
      EXPECT_EQ(wrong->at("sum/128/in").weights(), models["sum/128/in"].weights());
    } else {
      EXPECT_EQ(wrong.error().code(), StatusCode::kCorruption);
      EXPECT_NE(wrong.error().message().find(other.string()), std::string::npos);
    }
  }
  EXPECT_EQ(LoadCostModels(FileSystem::Posix(), folder.path() / "none").error().code(),
            StatusCode::kNotFound);
}

/// Returns the smallest possible maximum over all ways to cut costs[begin..] into `parts` ranges.
double LeastLargest(const std::vector<double>& costs, std::size_t begin, std::size_t parts) {
  double sum = 0;
  if (parts == 1) {
    for (std::size_t v = begin; v < costs.size(); ++v) sum += costs[v];
    return sum;
  }
  double least = LeastLargest(costs, begin, parts - 1);
  for (std::size_t end = begin; end < costs.size(); ++end) {
    sum += costs[end];
    least = std::min(least, std::max(sum, LeastLargest(costs, end + 1, parts - 1)));
  }
  return least;
}

TEST(RangeCutTest, TheLargestRangeIsAsSmallAsAnyCutMakesIt) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 1000; ++round) {
    std::vector<double> costs(random() % 12);
    std::vector<double> sums = {0};
    for (double& cost : costs) {
      cost = static_cast<double>(random() % 4 == 0 ? random() % 1000 : random() % 10);
      sums.push_back(sums.back() + cost);
    }
    const std::size_t parts = 1 + random() % 5;
    const auto cost = [&](std::size_t begin, std::size_t end) { return sums[end] - sums[begin]; };
    const std::vector<std::size_t> ends = CutByCost(costs.size(), parts, cost);
    ASSERT_EQ(ends.size(), parts + 1);
    ASSERT_EQ(ends.front(), 0u);
    ASSERT_EQ(ends.back(), costs.size());
    double largest = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      ASSERT_LE(ends[i], ends[i + 1]);
      largest = std::max(largest, cost(ends[i], ends[i + 1]));
    }
    ASSERT_NEAR(largest, LeastLargest(costs, 0, parts), 1e-6 * (1 + sums.back()));
  }
}

TEST(RangeCutTest, MovesOnlyIfWhatIsLeftPaysForIt) {
  EXPECT_TRUE(IsWorthMoving(1.4, 1.0, 10, 3));
  EXPECT_FALSE(IsWorthMoving(1.4, 1.0, 10, 4.1));
  EXPECT_FALSE(IsWorthMoving(1.0, 1.1, 10, 0));
}

}  // namespace
}  // namespace rhizome
