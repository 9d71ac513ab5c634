#include "cache/tables/row_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "testing/testing.h"

// Tests of RowOptimizer: each kind against its published formula, in double precision.

namespace rhizome {
namespace {

using Doubles = std::vector<double>;

constexpr std::size_t kOptimizedDim = 7;
constexpr double kRate = 0.05;
constexpr double kEpsilon = 1e-8;

/// Applies the formulas to one row; every step has a gradient, except those in `skipped`.
Doubles Expected(RowOptimizerKind kind, Doubles value, const std::vector<Doubles>& gradients,
                 std::size_t skipped) {
  Doubles first(kOptimizedDim);
  Doubles second(kOptimizedDim);
  double row_sum = 0;
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    if (t == skipped) continue;
    const Doubles& g = gradients[t];
    double mean_square = 0;
    for (const double x : g) mean_square += x * x / static_cast<double>(kOptimizedDim);
    row_sum += mean_square;
    const double steps = static_cast<double>(t + 1);
    for (std::size_t i = 0; i < kOptimizedDim; ++i) {
      if (kind == RowOptimizerKind::kSgd) value[i] -= kRate * g[i];
      if (kind == RowOptimizerKind::kAdagradRow)
        value[i] -= kRate * g[i] / (std::sqrt(row_sum) + kEpsilon);
      if (kind == RowOptimizerKind::kAdagrad) {
        second[i] += g[i] * g[i];
        value[i] -= kRate * g[i] / (std::sqrt(second[i]) + kEpsilon);
      }
      if (kind == RowOptimizerKind::kAdam) {
        first[i] = 0.9 * first[i] + 0.1 * g[i];
        second[i] = 0.999 * second[i] + 0.001 * g[i] * g[i];
        const double m = first[i] / (1 - std::pow(0.9, steps));
        const double v = second[i] / (1 - std::pow(0.999, steps));
        value[i] -= kRate * m / (std::sqrt(v) + kEpsilon);
      }
    }
  }
  return value;
}

class RowOptimizerTest : public ::testing::TestWithParam<RowOptimizerKind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, RowOptimizerTest,
                         ::testing::Values(RowOptimizerKind::kAdagrad,
                                           RowOptimizerKind::kAdagradRow, RowOptimizerKind::kAdam,
                                           RowOptimizerKind::kSgd));

// A row that a step leaves out does not move in that step, nor do its moments decay.
TEST_P(RowOptimizerTest, EqualsItsFormula) {
  std::mt19937_64 random(testing::TestSeed());
  std::normal_distribution<double> normal;
  const RowOptimizer optimizer({.kind = GetParam(), .learning_rate = kRate, .epsilon = kEpsilon},
                               kOptimizedDim);
  for (const std::size_t skipped : {std::size_t{3}, std::size_t{100}}) {
    Doubles value(kOptimizedDim);
    for (double& x : value) x = normal(random);
    std::vector<Doubles> gradients(10, Doubles(kOptimizedDim));
    for (Doubles& gradient : gradients)
      for (double& x : gradient) x = normal(random);
    const Doubles expected = Expected(GetParam(), value, gradients, skipped);
    std::vector<float> row(optimizer.row_floats());
    std::copy(value.begin(), value.end(), row.begin());
    for (std::size_t t = 0; t < gradients.size(); ++t) {
      const std::vector<float> gradient(gradients[t].begin(), gradients[t].end());
      if (t != skipped) optimizer.Update(row, gradient, t + 1);
    }
    for (std::size_t i = 0; i < kOptimizedDim; ++i) EXPECT_NEAR(row[i], expected[i], 2e-5);
  }
}

TEST_P(RowOptimizerTest, HasAName) {
  EXPECT_EQ(ParseRowOptimizer(RowOptimizerName(GetParam())), GetParam());
  EXPECT_EQ(ParseRowOptimizer("adagra"), std::nullopt);
}

TEST(RowOptimizerTest, StatesHaveTheStatedSizes) {
  EXPECT_EQ(RowOptimizer({.kind = RowOptimizerKind::kAdagrad}, 8).row_floats(), 16U);
  EXPECT_EQ(RowOptimizer({.kind = RowOptimizerKind::kAdagradRow}, 8).row_floats(), 9U);
  EXPECT_EQ(RowOptimizer({.kind = RowOptimizerKind::kAdam}, 8).row_floats(), 24U);
  EXPECT_EQ(RowOptimizer({.kind = RowOptimizerKind::kSgd}, 8).row_floats(), 8U);
}

}  // namespace
}  // namespace rhizome
