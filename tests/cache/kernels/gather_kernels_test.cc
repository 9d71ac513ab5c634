#include "cache/kernels/gather_kernels.h"

#include <bit>
#include <cmath>
#include <limits>

#include "cache/kernels/gather_testing.h"

// Tests of the aggregation kernels of full-graph passes (maxima and additive attention, with their
// gradients) in every SIMD path and for any division of rows into windows, against plain loops in
// double precision.

namespace rhizome {
namespace {

using testing::DropCase;
using testing::DropCases;
using testing::GatherCase;
using testing::InEverySet;
using testing::kInfinity;
using testing::MakeGather;
using testing::RandomFloats;

constexpr std::size_t kWidths[] = {1, 3, 8, 16, 17, 33, 64, 100, 129};

TEST(GatherKernelsTest, MaximaAndTheirWinnersAreThoseOfAPlainLoop) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::size_t dim : kWidths) {
    GatherCase c = MakeGather(dim + 2, 1, random);
    for (float& x : c.x) {
      x = std::round(x * 4);  // many values are equal
      if (random() % 40 == 0) x = std::numeric_limits<float>::quiet_NaN();
      if (random() % 40 == 0) x = -kInfinity;
    }
    std::vector<std::uint32_t> numbers;
    for (std::size_t j = 0; j < c.sources; ++j)
      numbers.push_back(static_cast<std::uint32_t>(1000 + 3 * j));
    std::vector<float> begin(c.targets() * 2 * dim, -kInfinity);
    for (std::size_t i = 0; i < begin.size(); ++i)
      if (i / dim % 2 == 1) begin[i] = std::bit_cast<float>(kNoWinner);
    const std::vector<float> state =
        InEverySet(c, begin, [&](const GatherKernels& kernels, const GatherRows& rows, float* at) {
          kernels.max({.rows = rows, .dim = dim, .number = numbers.data(), .state = at}, 0,
                      c.targets());
        });
    for (std::size_t t = 0; t < c.targets(); ++t) {
      for (std::size_t d = 0; d < dim; ++d) {
        float most = -kInfinity;
        std::uint32_t winner = kNoWinner;
        for (std::uint32_t e = c.csr.offsets[t]; e < c.csr.offsets[t + 1]; ++e) {
          const std::uint32_t j = c.csr.neighbors[e];
          const float x = c.x[j * c.stride + d];
          const bool more = winner == kNoWinner || x > most || (x != x && most == most);
          if (!more) continue;
          most = x;
          winner = numbers[j];
        }
        const float* const of = state.data() + t * 2 * dim + d;
        EXPECT_EQ(std::bit_cast<std::uint32_t>(of[0]), std::bit_cast<std::uint32_t>(most));
        EXPECT_EQ(std::bit_cast<std::uint32_t>(of[dim]), winner) << dim;
      }
    }
  }
}

TEST(GatherKernelsTest, AMaximumsGradientComesBackOnceFromEachRowThatItWon) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::uint32_t kFirst = 7;
  for (const std::size_t dim : kWidths) {
    GatherCase c = MakeGather(2 * dim, 1, random);
    for (std::size_t j = 0; j < c.sources; ++j) {
      for (std::size_t d = 0; d < dim; ++d) {
        const std::uint64_t target = random() % (2 * c.targets());
        c.x[j * c.stride + dim + d] =
            std::bit_cast<float>(static_cast<std::uint32_t>(kFirst + target));
      }
    }
    const std::vector<float> out = InEverySet(
        c, std::vector<float>(c.targets() * dim, 0.0F),
        [&](const GatherKernels& kernels, const GatherRows& rows, float* at) {
          kernels.max_gradient({.rows = rows, .dim = dim, .first_target = kFirst, .out = at}, 0,
                               c.targets());
        });
    for (std::size_t t = 0; t < c.targets(); ++t) {
      for (std::size_t d = 0; d < dim; ++d) {
        double sum = 0;
        for (std::size_t j = 0; j < c.sources; ++j) {
          const auto begin = c.csr.neighbors.begin() + c.csr.offsets[t];
          const auto end = c.csr.neighbors.begin() + c.csr.offsets[t + 1];
          const float* const row = c.x.data() + j * c.stride;
          const bool won = std::bit_cast<std::uint32_t>(row[dim + d]) == kFirst + t;
          if (won && std::binary_search(begin, end, j)) sum += row[d];
        }
        EXPECT_NEAR(out[t * dim + d], sum, 1e-4) << dim;
      }
    }
  }
}

struct GatherShapeCase {
  std::size_t heads, width;
};
constexpr GatherShapeCase kShapes[] = {{1, 1},  {1, 7},  {8, 8},   {4, 16}, {3, 5},
                                       {4, 64}, {2, 48}, {5, 33},  {17, 3}, {1, 256},
                                       {6, 32}, {1, 40}, {256, 2}, {16, 1}};
constexpr float kSlope = 0.2F;

double LeakyOf(double sum) { return sum > 0 ? sum : kSlope * sum; }

/// Compares the aggregated state of an attention with a softmax in double precision.
void ExpectSoftmax(const GatherCase& c, const GatherShapeCase& shape, const DropCase& drop,
                   const std::vector<float>& state) {
  const std::size_t heads = shape.heads, width = shape.width;
  const std::size_t w = heads * width, columns = 2 * w + 4 * heads;
  for (std::size_t t = 0; t < c.targets(); ++t) {
    const float* const of = state.data() + t * columns;
    for (std::size_t h = 0; h < heads; ++h) {
      const double most = of[2 * w + 2 * heads + h], query = of[2 * w + 3 * heads + h];
      double weights[2] = {}, largest = -kInfinity;
      std::vector<double> sums[2] = {std::vector<double>(width), std::vector<double>(width)};
      for (std::uint32_t e = c.csr.offsets[t]; e < c.csr.offsets[t + 1]; ++e) {
        const float* const row = c.x.data() + c.csr.neighbors[e] * c.stride;
        const double sum = row[w + h] + query;
        const double weight = std::exp(LeakyOf(sum) - most);
        const double kept = weight * drop.FactorOf(c, t, e, heads, h, /*back=*/false);
        const std::size_t side = sum > 0 ? 0 : 1;
        largest = std::max(largest, LeakyOf(sum));
        weights[side] += weight;
        for (std::size_t i = 0; i < width; ++i) sums[side][i] += kept * row[h * width + i];
      }
      if (c.csr.offsets[t] == c.csr.offsets[t + 1]) {
        EXPECT_EQ(most, -kInfinity);
      } else {
        EXPECT_LE(largest, most + 8.001);
      }
      const double scale = 1e-5 * (weights[0] + weights[1] + 1);
      for (std::size_t side = 0; side < 2; ++side) {
        EXPECT_NEAR(of[2 * w + side * heads + h], weights[side], scale) << heads << "x" << width;
        for (std::size_t i = 0; i < width; ++i)
          EXPECT_NEAR(of[side * w + h * width + i], sums[side][i], 20 * scale);
      }
    }
  }
}

TEST(GatherKernelsTest, AttentionEqualsSoftmaxInDoubleOnBothSidesOfZero) {
  std::mt19937_64 random(testing::TestSeed());
  for (const GatherShapeCase& shape : kShapes) {
    const std::size_t heads = shape.heads, width = shape.width;
    // Scores are spread widely enough for maxima to rise.
    const std::size_t w = heads * width, columns = 2 * w + 4 * heads;
    const GatherCase c = MakeGather(w + 2 * heads, 12, random);
    std::vector<float> begin(c.targets() * columns, 0.0F);
    for (std::size_t t = 0; t < c.targets(); ++t) {
      for (std::size_t h = 0; h < heads; ++h) {
        begin[t * columns + 2 * w + 2 * heads + h] = -kInfinity;
        begin[t * columns + 2 * w + 3 * heads + h] = RandomFloats(1, 6, random)[0];
      }
    }
    for (const DropCase& drop : DropCases(c, random)) {
      const auto run = [&](const GatherKernels& kernels, const GatherRows& rows, float* at) {
        kernels.attend({.rows = rows,
                        .heads = heads,
                        .width = width,
                        .slope = kSlope,
                        .state = at,
                        .dropout = drop.dropout,
                        .numbers = drop.Numbers()},
                       0, c.targets());
      };
      ExpectSoftmax(c, shape, drop, InEverySet(c, begin, run));
    }
  }
}

/// Compares the gradients of an attention with the same in double precision.
void ExpectReturns(const GatherCase& c, const GatherShapeCase& shape, const DropCase& drop,
                   const std::vector<float>& begin, const std::vector<float>& state) {
  const std::size_t heads = shape.heads, width = shape.width;
  const std::size_t w = heads * width, columns = 2 * w + 3 * heads;
  for (std::size_t t = 0; t < c.targets(); ++t) {
    const float* const of = state.data() + t * columns;
    const float* const z = of + w + 2 * heads;
    for (std::size_t h = 0; h < heads; ++h) {
      double of_score = 0;
      std::vector<double> of_z(width);
      const std::uint32_t first = c.csr.offsets[t], end = c.csr.offsets[t + 1];
      for (std::uint32_t e = first; e < end; ++e) {
        const float* const row = c.x.data() + c.csr.neighbors[e] * c.stride;
        const double factor = drop.FactorOf(c, t, e, heads, h, /*back=*/true);
        const double sum = z[w + h] + row[w + h];
        const double weight = std::exp(LeakyOf(sum) - row[w + heads + h]) * row[w + 2 * heads + h];
        double product = -row[w + 3 * heads + h];
        for (std::size_t i = 0; i < width; ++i) {
          product += factor * row[h * width + i] * z[h * width + i];
          of_z[i] += factor * weight * row[h * width + i];
        }
        of_score += weight * product * (sum > 0 ? 1 : kSlope);
      }
      const double scale = 1e-5 * (end - first + 1);
      EXPECT_NEAR(of[w + h], of_score, 2 * scale * static_cast<double>(width))
          << heads << "x" << width;
      EXPECT_EQ(of[w + heads + h], begin[t * columns + w + heads + h]);
      for (std::size_t i = 0; i < width; ++i) EXPECT_NEAR(of[h * width + i], of_z[i], 2 * scale);
    }
  }
}

TEST(GatherKernelsTest, AttentionsGradientEqualsThatInDouble) {
  std::mt19937_64 random(testing::TestSeed());
  for (const GatherShapeCase& shape : kShapes) {
    const std::size_t heads = shape.heads, width = shape.width;
    const std::size_t w = heads * width, columns = 2 * w + 3 * heads;
    GatherCase c = MakeGather(2 * w + 6 * heads, 1, random);
    for (std::size_t j = 0; j < c.sources; ++j) {
      for (std::size_t h = 0; h < heads; ++h) {
        c.x[j * c.stride + w + heads + h] += 2;                     // maximum
        float& reciprocal = c.x[j * c.stride + w + 2 * heads + h];  // reciprocal of the sum
        reciprocal = std::abs(reciprocal) + 0.1F;
      }
    }
    std::vector<float> begin = RandomFloats(c.targets() * columns, 1, random);
    for (std::size_t t = 0; t < c.targets(); ++t)
      std::fill_n(begin.begin() + static_cast<std::ptrdiff_t>(t * columns), w + heads, 0.0F);
    for (const DropCase& drop : DropCases(c, random)) {
      const auto run = [&](const GatherKernels& kernels, const GatherRows& rows, float* at) {
        kernels.attend_gradient({.rows = rows,
                                 .heads = heads,
                                 .width = width,
                                 .slope = kSlope,
                                 .state = at,
                                 .dropout = drop.dropout,
                                 .numbers = drop.Numbers()},
                                0, c.targets());
      };
      ExpectReturns(c, shape, drop, begin, InEverySet(c, begin, run));
    }
  }
}

}  // namespace
}  // namespace rhizome
