#include <cmath>

#include "cache/kernels/gather_testing.h"

// Tests of the aggregation kernels for Gatv2 attention, whose scores need whole rows of source and
// target: the forward pass and the gradients of sources and targets, in every SIMD path and for any
// division into windows, against plain loops in double precision.

namespace rhizome {
namespace {

using testing::DropCase;
using testing::DropCases;
using testing::GatherCase;
using testing::InEverySet;
using testing::kInfinity;
using testing::MakeGather;
using testing::RandomFloats;

struct WholeScores {
  std::size_t heads, width;
  std::vector<float> vectors;  // [heads, width]
  std::size_t all() const { return heads * width; }

  /// Returns the score of head h for the rows z (source) and q (target) of all heads.
  double Of(std::size_t h, const float* z, const float* q) const {
    double score = 0;
    for (std::size_t i = h * width; i < (h + 1) * width; ++i) {
      const double sum = double{z[i]} + q[i];
      score += vectors[i] * (sum > 0 ? sum : 0.2 * sum);
    }
    return score;
  }
};

std::vector<WholeScores> WholeScoreCases(float spread, std::mt19937_64& random) {
  std::vector<WholeScores> cases;
  for (const auto& [heads, width] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
           {1, 1}, {8, 8}, {4, 16}, {3, 5}, {2, 48}, {5, 33}, {17, 3}, {1, 256}, {256, 2}}) {
    // The spread of the scores is about the same for all widths.
    const float each = spread / std::sqrt(static_cast<float>(width));
    cases.push_back({heads, width, RandomFloats(heads * width, each, random)});
  }
  return cases;
}

void ExpectAttended(const GatherCase& c, const WholeScores& of, const DropCase& drop,
                    const std::vector<float>& state) {
  const std::size_t w = of.all(), columns = 2 * w + 2 * of.heads;
  for (std::size_t t = 0; t < c.targets(); ++t) {
    const float* const made = state.data() + t * columns;
    const float* const query = made + w + 2 * of.heads;
    const std::uint32_t first = c.csr.offsets[t], end = c.csr.offsets[t + 1];
    for (std::size_t h = 0; h < of.heads; ++h) {
      const double most = made[w + of.heads + h];
      double weights = 0, largest = -kInfinity;
      std::vector<double> sums(of.width);
      for (std::uint32_t e = first; e < end; ++e) {
        const float* const z = c.x.data() + c.csr.neighbors[e] * c.stride;
        const double score = of.Of(h, z, query);
        const double weight = std::exp(score - most);
        const double kept = weight * drop.FactorOf(c, t, e, of.heads, h, /*back=*/false);
        largest = std::max(largest, score);
        weights += weight;
        for (std::size_t i = 0; i < of.width; ++i) sums[i] += kept * z[h * of.width + i];
      }
      if (first == end) {
        EXPECT_EQ(most, -kInfinity);
      } else {
        EXPECT_LE(largest, most + 8.01);
      }
      const double scale = 2e-5 * (weights + 1);
      EXPECT_NEAR(made[w + h], weights, scale) << of.heads << "x" << of.width;
      for (std::size_t i = 0; i < of.width; ++i)
        EXPECT_NEAR(made[h * of.width + i], sums[i], 6 * scale) << of.heads << "x" << of.width;
    }
  }
}

TEST(GatherKernelsTest, AttentionOfWholeRowsEqualsSoftmaxInDouble) {
  std::mt19937_64 random(testing::TestSeed());
  for (const WholeScores& of : WholeScoreCases(7, random)) {
    const std::size_t w = of.all(), columns = 2 * w + 2 * of.heads;
    const GatherCase c = MakeGather(w + 3, 3, random);
    std::vector<float> begin = RandomFloats(c.targets() * columns, 3, random);
    for (std::size_t t = 0; t < c.targets(); ++t) {
      float* const at = begin.data() + t * columns;
      std::fill_n(at, w + of.heads, 0.0F);
      std::fill_n(at + w + of.heads, of.heads, -kInfinity);
    }
    for (const DropCase& drop : DropCases(c, random)) {
      const auto run = [&](const GatherKernels& kernels, const GatherRows& rows, float* at) {
        kernels.attend_v2({.rows = rows,
                           .heads = of.heads,
                           .width = of.width,
                           .slope = 0.2F,
                           .vectors = of.vectors.data(),
                           .state = at,
                           .dropout = drop.dropout,
                           .numbers = drop.Numbers()},
                          0, c.targets());
      };
      ExpectAttended(c, of, drop, InEverySet(c, begin, run));
    }
  }
}

/// Gradients of one edge in double precision. `target` is the row [g w | q w | m h | r h | D h] of
/// gradient, query, maximum, reciprocal of the sum and weighted dot product; z is the source.
struct EdgeReturn {
  double kept = 0;   // factor of g
  double score = 0;  // gradient of the score

  EdgeReturn(const WholeScores& of, std::size_t h, const float* target, const float* z,
             double factor) {
    const std::size_t w = of.all();
    const double weight =
        std::exp(of.Of(h, z, target + w) - target[2 * w + h]) * target[2 * w + of.heads + h];
    double product = 0;
    for (std::size_t i = h * of.width; i < (h + 1) * of.width; ++i)
      product += double{target[i]} * z[i];
    kept = factor * weight;
    score = weight * (factor * product - target[2 * w + 2 * of.heads + h]);
  }
};

/// Adjusts a random target row so that its attention weights are near 1.
void MakeReturning(const WholeScores& of, float* target) {
  for (std::size_t h = 0; h < of.heads; ++h) {
    float* const most = target + 2 * of.all() + h;
    *most += 1;
    most[of.heads] = std::abs(most[of.heads]) + 0.1F;
  }
}

TEST(GatherKernelsTest, TheGradientOfSourcesOfWholeRowsEqualsThatInDouble) {
  std::mt19937_64 random(testing::TestSeed());
  for (const WholeScores& of : WholeScoreCases(1, random)) {
    const std::size_t w = of.all();
    GatherCase c = MakeGather(3 * w + 3 * of.heads, 1, random);
    for (std::size_t j = 0; j < c.sources; ++j) MakeReturning(of, c.x.data() + j * c.stride);
    std::vector<float> begin = RandomFloats(c.targets() * 3 * w, 1, random);
    for (std::size_t t = 0; t < c.targets(); ++t)
      std::fill_n(begin.data() + t * 3 * w, 2 * w, 0.0F);
    for (const DropCase& drop : DropCases(c, random)) {
      const auto run = [&](const GatherKernels& kernels, const GatherRows& rows, float* at) {
        kernels.attend_v2_gradient({.rows = rows,
                                    .heads = of.heads,
                                    .width = of.width,
                                    .slope = 0.2F,
                                    .vectors = of.vectors.data(),
                                    .state = at,
                                    .dropout = drop.dropout,
                                    .numbers = drop.Numbers()},
                                   0, c.targets());
      };
      const std::vector<float> state = InEverySet(c, begin, run);
      for (std::size_t t = 0; t < c.targets(); ++t) {
        const float* const made = state.data() + t * 3 * w;
        const float* const z = made + 2 * w;
        std::vector<double> values(w), scores(w);
        const std::uint32_t first = c.csr.offsets[t], end = c.csr.offsets[t + 1];
        for (std::uint32_t e = first; e < end; ++e) {
          const float* const row = c.x.data() + c.csr.neighbors[e] * c.stride;
          for (std::size_t h = 0; h < of.heads; ++h) {
            const EdgeReturn edge(of, h, row, z,
                                  drop.FactorOf(c, t, e, of.heads, h, /*back=*/true));
            for (std::size_t i = h * of.width; i < (h + 1) * of.width; ++i) {
              values[i] += edge.kept * row[i];
              scores[i] += edge.score * (z[i] + row[w + i] > 0 ? 1 : 0.2F);
            }
          }
        }
        const double scale = 3e-5 * (end - first + 1) * std::sqrt(static_cast<double>(of.width));
        for (std::size_t i = 0; i < w; ++i) {
          EXPECT_NEAR(made[i], values[i], scale) << of.heads << "x" << of.width;
          EXPECT_NEAR(made[w + i], scores[i], scale) << of.heads << "x" << of.width;
        }
      }
    }
  }
}

TEST(GatherKernelsTest, TheGradientOfWhatTargetsAskWithWholeRowsEqualsThatInDouble) {
  std::mt19937_64 random(testing::TestSeed());
  for (const WholeScores& of : WholeScoreCases(1, random)) {
    const std::size_t w = of.all(), own = 2 * w + 3 * of.heads;
    const GatherCase c = MakeGather(own + w, 1, random);
    std::vector<float> begin = RandomFloats(c.targets() * (w + own), 1, random);
    for (std::size_t t = 0; t < c.targets(); ++t) {
      std::fill_n(begin.data() + t * (w + own), w, 0.0F);
      MakeReturning(of, begin.data() + t * (w + own) + w);
    }
    for (const DropCase& drop : DropCases(c, random)) {
      const auto run = [&](const GatherKernels& kernels, const GatherRows& rows, float* at) {
        kernels.attend_v2_query_gradient({.rows = rows,
                                          .heads = of.heads,
                                          .width = of.width,
                                          .slope = 0.2F,
                                          .vectors = of.vectors.data(),
                                          .state = at,
                                          .dropout = drop.dropout,
                                          .numbers = drop.Numbers()},
                                         0, c.targets());
      };
      const std::vector<float> state = InEverySet(c, begin, run);
      for (std::size_t t = 0; t < c.targets(); ++t) {
        const float* const made = state.data() + t * (w + own);
        const float* const target = made + w;
        std::vector<double> scores(w);
        const std::uint32_t first = c.csr.offsets[t], end = c.csr.offsets[t + 1];
        for (std::uint32_t e = first; e < end; ++e) {
          const float* const z = c.x.data() + c.csr.neighbors[e] * c.stride + own;
          for (std::size_t h = 0; h < of.heads; ++h) {
            const EdgeReturn edge(of, h, target, z,
                                  drop.FactorOf(c, t, e, of.heads, h, /*back=*/false));
            for (std::size_t i = h * of.width; i < (h + 1) * of.width; ++i)
              scores[i] += edge.score * (z[i] + target[w + i] > 0 ? 1 : 0.2F);
          }
        }
        const double scale = 3e-5 * (end - first + 1) * std::sqrt(static_cast<double>(of.width));
        for (std::size_t i = 0; i < w; ++i)
          EXPECT_NEAR(made[i], scores[i], scale) << of.heads << "x" << of.width;
      }
    }
  }
}

}  // namespace
}  // namespace rhizome
