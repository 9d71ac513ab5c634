#include "cache/kernels/attention_kernels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cache/kernels/attention_testing.h"
#include "cache/kernels/simd.h"
#include "storage/base/half.h"
#include "testing/testing.h"

// Tests of the attention kernels in every SIMD path: all paths have the same bits and agree with a
// softmax in double precision, also for half-precision rows, lists in pieces, large scores and NaN.
// The exponential function is tested separately.

namespace rhizome {
namespace {

using testing::ArgsOf;
using testing::AttentionCase;
using testing::FillAttention;
using testing::RandomFloats;
using testing::SourcesOf;
using testing::WeightsInDouble;

constexpr AttendScore kScores[] = {AttendScore::kAdditive, AttendScore::kGatv2, AttendScore::kDot};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Returns lists with parallel edges, empty lists, and one list of `hub` edges.
Csr ListsWithHub(std::size_t targets, std::size_t sources, std::size_t hub,
                 std::mt19937_64& random) {
  Csr csr;
  for (std::size_t t = 0; t < targets; ++t) {
    const std::size_t degree = t == targets / 2 ? hub : t % 5 == 3 ? 0 : random() % 30;
    for (std::size_t i = 0; i < degree; ++i) {
      csr.neighbors.push_back(i % 7 == 6 ? csr.neighbors.back()
                                         : static_cast<std::uint32_t>(random() % sources));
    }
    csr.offsets.push_back(static_cast<std::uint32_t>(csr.neighbors.size()));
  }
  return csr;
}

AttentionCase MakeCase(AttendScore score, std::size_t heads, std::size_t width, bool own,
                       std::mt19937_64& random) {
  AttentionCase c;
  c.score = score;
  c.heads = heads;
  c.width = width;
  c.own = own;
  c.sources = 50;
  c.csr = ListsWithHub(20, c.sources, 400, random);
  FillAttention(c, 3, random);
  return c;
}

struct Heads {
  std::size_t heads, width;
};
constexpr Heads kHeads[] = {{1, 1},  {1, 7},  {8, 8},  {4, 16},  {3, 5},   {4, 64}, {1, 256},
                            {2, 48}, {5, 33}, {17, 3}, {1, 523}, {256, 2}, {6, 32}};

TEST(AttentionKernelsTest, ResultsEqualSoftmaxInDoubleInEveryPathWithTheSameBits) {
  std::mt19937_64 random(testing::TestSeed());
  for (const AttendScore score : kScores) {
    for (const auto& [heads, width] : kHeads) {
      for (const bool own : {false, true}) {
        if (own && score == AttendScore::kDot) continue;
        AttentionCase c = MakeCase(score, heads, width, own, random);
        std::vector<float> first;
        for (const SimdPath path : AvailableSimdPaths()) {
          std::fill(c.out.begin(), c.out.end(), 7.0F);
          KernelsOf(path).attend(ArgsOf(c), 0, c.targets());
          std::vector<float> all = c.out;
          all.insert(all.end(), c.maximum.begin(), c.maximum.end());
          all.insert(all.end(), c.denominator.begin(), c.denominator.end());
          if (first.empty()) first = all;
          EXPECT_TRUE(SameBits(all, first)) << SimdPathName(path) << " " << heads << "x" << width;
        }
        for (std::size_t t = 0; t < c.targets(); ++t) {
          const std::vector<std::size_t> sources = SourcesOf(c, t);
          for (std::size_t h = 0; h < heads; ++h) {
            const std::vector<double> weights = WeightsInDouble(c, t, h);
            for (std::size_t d = h * width; d < (h + 1) * width; ++d) {
              double expected = 0;
              for (std::size_t i = 0; i < sources.size(); ++i) {
                expected += weights[i] * c.value(sources[i], d);
              }
              ASSERT_NEAR(c.out[t * c.dim() + d], expected, width > 100 ? 1e-3 : 1e-4)
                  << heads << "x" << width << " target " << t;
            }
          }
        }
      }
    }
  }
}

TEST(AttentionKernelsTest, WiderRowsOfHalfPrecisionAreReadAsTheirFloats) {
  std::mt19937_64 random(testing::TestSeed());
  for (const AttendScore score : kScores) {
    for (const auto& [heads, width] : kHeads) {
      AttentionCase c = MakeCase(score, heads, width, false, random);
      const std::size_t stride = c.row() + 3;
      std::vector<std::uint16_t> half(c.sources * stride, 0x7C01), bfloat(half);  // NaNs
      std::vector<float> of_half(c.x.size()), of_bfloat(c.x.size());
      for (std::size_t i = 0; i < c.x.size(); ++i) {
        const std::size_t at = i / c.row() * stride + i % c.row();
        half[at] = static_cast<std::uint16_t>(0x3000 + random() % 0x0C00 + random() % 2 * 0x8000);
        bfloat[at] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(c.x[i]) >> 16);
        of_half[i] = HalfToFloat(half[at]);
        of_bfloat[i] = std::bit_cast<float>(std::uint32_t{bfloat[at]} << 16);
      }
      for (const SimdPath path : AvailableSimdPaths()) {
        for (const RowType type : {RowType::kFloat16, RowType::kBfloat16}) {
          c.x = type == RowType::kFloat16 ? of_half : of_bfloat;
          AttendArgs args = ArgsOf(c);
          KernelsOf(path).attend(args, 0, c.targets());
          const std::vector<float> expected = c.out;
          args.type = type;
          args.x = type == RowType::kFloat16 ? half.data() : bfloat.data();
          args.x_stride = stride;
          KernelsOf(path).attend(args, 0, c.targets());
          EXPECT_TRUE(SameBits(c.out, expected)) << SimdPathName(path) << heads << "x" << width;
        }
      }
    }
  }
}

TEST(AttentionKernelsTest, ListsInPiecesGiveTheSameBitsAsWhole) {
  std::mt19937_64 random(testing::TestSeed());
  for (const AttendScore score : kScores) {
    for (const auto& [heads, width] : kHeads) {
      AttentionCase c = MakeCase(score, heads, width, false, random);
      std::vector<std::uint32_t> cuts(c.csr.offsets.begin(), c.csr.offsets.end() - 1);
      for (const SimdPath path : AvailableSimdPaths()) {
        AttendArgs args = ArgsOf(c);
        KernelsOf(path).attend(args, 0, c.targets());
        const AttentionCase whole = c;
        std::vector<std::uint32_t> begins = cuts, ends = cuts;
        args.finish = false;
        for (int piece = 0; piece < 5; ++piece) {
          for (std::size_t t = 0; t < c.targets(); ++t) {
            const std::uint32_t left = c.csr.offsets[t + 1] - begins[t];
            const auto part = static_cast<std::uint32_t>(random() % (left + 1));
            ends[t] = begins[t] + (piece == 3 ? left : part);  // the last piece is empty
          }
          args.begins = begins.data();
          args.ends = ends.data();
          args.keep = piece > 0;
          args.finish = piece == 4;
          KernelsOf(path).attend(args, 0, c.targets());
          begins = ends;
        }
        EXPECT_TRUE(SameBits(c.out, whole.out)) << SimdPathName(path) << heads << "x" << width;
        EXPECT_TRUE(SameBits(c.maximum, whole.maximum));
        EXPECT_TRUE(SameBits(c.denominator, whole.denominator));
      }
    }
  }
}

/// Returns the exponentials that the kernels compute for `numbers`, which are at most
/// kMaximumSlack. Each number is the score of a list of one edge, and the maximum so far is zero.
std::vector<float> Exponentials(const std::vector<float>& numbers, SimdPath path) {
  AttentionCase c;
  c.heads = 128;
  c.width = 1;
  c.slope = 1;
  c.sources = numbers.size() / c.heads;
  for (std::uint32_t t = 0; t < c.sources; ++t) {
    c.csr.neighbors.push_back(t);
    c.csr.offsets.push_back(t + 1);
  }
  c.x.assign(numbers.size(), 1);
  c.source = numbers;
  c.query.assign(numbers.size(), 0);
  c.maximum.assign(numbers.size(), 0);
  c.denominator.assign(numbers.size(), 0);
  c.out.assign(numbers.size(), 0);
  AttendArgs args = ArgsOf(c);
  args.keep = true;
  args.finish = false;
  KernelsOf(path).attend(args, 0, c.targets());
  EXPECT_TRUE(SameBits(c.out, c.denominator)) << "weight and denominator differ";
  return c.denominator;
}

TEST(AttentionKernelsTest, ExponentialsLieWithinTwoUnitsInTheLastPlace) {
  std::mt19937_64 random(testing::TestSeed());
  std::vector<float> numbers;
  // Covers every exponent and sign of the remainder, close to and far from zero.
  for (std::size_t i = 0; i < 1 << 19; ++i) {
    const double share = static_cast<double>(random()) * 0x1p-64;
    numbers.push_back(
        static_cast<float>(i % 2 == 0 ? kMaximumSlack - 95 * share : -std::exp(-20 * share)));
  }
  for (int n = 0; n < 126; ++n) {
    for (int step = -4; step < 4; ++step) {  // where the rounding of x / ln 2 changes
      numbers.push_back(static_cast<float>(-(n + 0.5) * std::log(2.0) * (1 + step * 1e-7)));
    }
  }
  numbers.resize(numbers.size() / 128 * 128);
  std::vector<float> first;
  for (const SimdPath path : AvailableSimdPaths()) {
    const std::vector<float> got = Exponentials(numbers, path);
    double worst = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double exact = std::exp(double{numbers[i]});
      const auto rounded = static_cast<float>(exact);
      const double unit = double{std::nextafter(rounded, HUGE_VALF)} - double{rounded};
      worst = std::max(worst, std::abs(double{got[i]} - exact) / unit);
    }
    EXPECT_LE(worst, 2) << SimdPathName(path);
    if (first.empty()) first = got;
    EXPECT_TRUE(SameBits(got, first)) << SimdPathName(path);
  }
}

TEST(AttentionKernelsTest, ExponentialsAreExactAtZeroAndVanishFarBelow) {
  std::vector<float> numbers(128, 0.0F);
  numbers[1] = -0.0F;
  numbers[2] = -88;
  numbers[3] = -1000;
  numbers[4] = -std::numeric_limits<float>::infinity();
  numbers[5] = -std::numeric_limits<float>::max();
  for (const SimdPath path : AvailableSimdPaths()) {
    const std::vector<float> got = Exponentials(numbers, path);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i], i >= 2 && i < 6 ? 0.0F : 1.0F) << numbers[i];
    }
  }
}

TEST(AttentionKernelsTest, LargeScoresNeitherOverflowNorVanishInAHub) {
  std::mt19937_64 random(testing::TestSeed());
  AttentionCase c;
  c.heads = 2;
  c.width = 3;
  c.sources = 300;
  c.csr = ListsWithHub(3, c.sources, 20000, random);
  FillAttention(c, 1, random);
  for (float& score : c.source) score *= 400;  // LeakyReLU maps this to -80 to 400
  c.query.assign(c.query.size(), 0);
  // The scores of the first head grow from edge to edge; the second head's scores shrink.
  for (std::size_t j = 0; j < c.sources; ++j) {
    c.source[2 * j] = -80 + 160 * static_cast<float>(j) / 300;
    c.source[2 * j + 1] = 80 - 160 * static_cast<float>(j) / 300;
  }
  for (std::size_t e = 0; e < c.csr.neighbors.size(); ++e) {
    c.csr.neighbors[e] = static_cast<std::uint32_t>(e % c.sources);
  }
  for (const SimdPath path : AvailableSimdPaths()) {
    KernelsOf(path).attend(ArgsOf(c), 0, c.targets());
    for (std::size_t t = 0; t < c.targets(); ++t) {
      const std::vector<std::size_t> sources = SourcesOf(c, t);
      for (std::size_t d = 0; d < c.dim(); ++d) {
        const std::vector<double> weights = WeightsInDouble(c, t, d / c.width);
        double expected = 0;
        for (std::size_t i = 0; i < sources.size(); ++i) {
          expected += weights[i] * double{c.x[sources[i] * c.dim() + d]};
        }
        EXPECT_NEAR(c.out[t * c.dim() + d], expected, 1e-4) << "target " << t;
      }
    }
  }
}

TEST(AttentionKernelsTest, ANanReachesItsHeadAlone) {
  for (const AttendScore score : kScores) {
    std::mt19937_64 random(testing::TestSeed());
    AttentionCase c = MakeCase(score, 3, 5, score != AttendScore::kDot, random);
    const std::size_t hub = c.targets() / 2;
    c.csr.neighbors.assign(c.csr.neighbors.size(), 30);
    c.csr.neighbors[c.csr.offsets[hub] + 200] = 31;
    c.x[31 * c.row() + 7] = std::numeric_limits<float>::quiet_NaN();
    c.source[31 * c.heads + 1] = std::numeric_limits<float>::quiet_NaN();
    for (const SimdPath path : AvailableSimdPaths()) {
      KernelsOf(path).attend(ArgsOf(c), 0, c.targets());
      for (std::size_t i = 0; i < c.out.size(); ++i) {
        EXPECT_EQ(std::isnan(c.out[i]), i / c.width == hub * c.heads + 1) << i;
      }
    }
  }
}

TEST(AttentionKernelsTest, HeadDotsEqualDoubleAndTheirGradientIsAnOuterProduct) {
  std::mt19937_64 random(testing::TestSeed());
  for (const auto& [heads, width] : kHeads) {
    constexpr std::size_t kRows = 9;
    const std::vector<float> x = RandomFloats(kRows * heads * width, 1, random);
    const std::vector<float> vectors = RandomFloats(heads * width, 1, random);
    const std::vector<float> gradient = RandomFloats(kRows * heads, 1, random);
    std::vector<float> out(kRows * heads), of_x(x.size());
    std::vector<float> first;
    for (const SimdPath path : AvailableSimdPaths()) {
      std::vector<float> of_vectors(vectors.size(), 0.0F);
      KernelsOf(path).head_dots({.type = RowType::kFloat32,
                                 .x = x.data(),
                                 .x_stride = heads * width,
                                 .heads = heads,
                                 .width = width,
                                 .vectors = vectors.data(),
                                 .out = out.data()},
                                0, kRows);
      KernelsOf(path).head_dots_gradient({.x = x.data(),
                                          .heads = heads,
                                          .width = width,
                                          .vectors = vectors.data(),
                                          .gradient = gradient.data(),
                                          .x_gradient = of_x.data(),
                                          .vector_gradient = of_vectors.data()},
                                         0, kRows);
      std::vector<float> all = out;
      all.insert(all.end(), of_x.begin(), of_x.end());
      all.insert(all.end(), of_vectors.begin(), of_vectors.end());
      if (first.empty()) first = all;
      EXPECT_TRUE(SameBits(all, first)) << SimdPathName(path) << heads << "x" << width;
      for (std::size_t d = 0; d < heads * width; ++d) {
        const std::size_t h = d / width;
        double sum = 0;
        for (std::size_t r = 0; r < kRows; ++r) {
          sum += double{gradient[r * heads + h]} * double{x[r * heads * width + d]};
          EXPECT_EQ(of_x[r * heads * width + d], gradient[r * heads + h] * vectors[d]);
        }
        EXPECT_NEAR(of_vectors[d], sum, 1e-5);
      }
      for (std::size_t i = 0; i < out.size(); ++i) {
        double sum = 0;
        for (std::size_t d = 0; d < width; ++d) {
          sum += double{x[i * width + d]} * double{vectors[i % heads * width + d]};
        }
        EXPECT_NEAR(out[i], sum, 1e-5 * static_cast<double>(width));
      }
    }
  }
}

}  // namespace
}  // namespace rhizome
