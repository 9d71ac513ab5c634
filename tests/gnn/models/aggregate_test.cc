#include "cache/kernels/aggregate.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <tuple>

#include "cache/kernels/simd.h"
#include "gnn/models/lists_testing.h"
#include "gnn/ops/activation.h"
#include "gnn/ops/aggregate_ops.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/torch_threads.h"
#include "storage/base/half.h"
#include "testing/testing.h"

// Tests of the operations that layers are built from, for every data type, width and SIMD path:
// sums, maxima and weighted means over neighbour lists with their gradients, activation with
// dropout, and dense products. References are libtorch's operations and difference quotients.

namespace rhizome {
namespace {

using testing::EdgesOf;
using testing::EdgeTensors;
using testing::RandomLists;
using testing::SameBits;

/// Widths around every multiple of registers and SIMD lanes, and odd ones.
constexpr std::int64_t kWidths[] = {1, 3, 4, 7, 16, 33, 64, 100, 128, 255, 256, 300, 512, 523};
constexpr std::size_t kTargets = 40;
constexpr std::size_t kSources = 60;

/// Restores the SIMD path at the end of each test.
class SimdPaths : public ::testing::Test {
 protected:
  void TearDown() override { SetSimdPath(before_); }
  const SimdPath before_ = CurrentSimdPath();
};

using AggregateTest = SimdPaths;

torch::Tensor RandomRows(std::int64_t rows, std::int64_t dim, torch::Dtype dtype) {
  return torch::randn({rows, dim}).to(dtype);
}

TEST_F(AggregateTest, SumsEqualIndexAddForEveryTypeWidthAndPath) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  for (const std::int64_t dim : kWidths) {
    for (const torch::Dtype dtype : {torch::kFloat32, torch::kHalf, torch::kBFloat16}) {
      const Csr csr = RandomLists(kTargets, kSources, random);
      const EdgeTensors edges = EdgesOf(csr);
      const torch::Tensor x = RandomRows(kSources, dim, dtype);
      const torch::Tensor expected =
          torch::zeros({kTargets, dim})
              .index_add_(0, edges.to, x.to(torch::kFloat32).index_select(0, edges.from));
      torch::Tensor first;
      for (const SimdPath path : AvailableSimdPaths()) {
        SetSimdPath(path);
        torch::Tensor out = torch::full({kTargets, dim}, 7.0F);
        AggregateRows(csr.view(), {}, RowsOf(x), 0, kTargets, out.data_ptr<float>());
        EXPECT_TRUE(torch::allclose(out, expected, 1e-5, 1e-5))
            << SimdPathName(path) << ", " << dim << " columns";
        if (!first.defined()) first = out;
        EXPECT_TRUE(SameBits(out, first)) << SimdPathName(path) << ", " << dim << " columns";
      }
    }
  }
}

TEST_F(AggregateTest, FactorsAndStartAreTakenInEveryPath) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  for (const std::int64_t dim : kWidths) {
    const Csr csr = RandomLists(kTargets, kSources, random);
    const EdgeTensors edges = EdgesOf(csr);
    const auto count = static_cast<std::int64_t>(csr.neighbors.size());
    // The rows are wider than the columns that are read, and half of the targets have an initial
    // value.
    const torch::Tensor x = torch::randn({kSources, dim + 5});
    const torch::Tensor start = torch::randn({kTargets / 2, dim + 2});
    const torch::Tensor target = torch::rand({kTargets}), source = torch::rand({kSources});
    const torch::Tensor edge = torch::rand({count + 1}), start_scale = torch::rand({kTargets / 2});
    const auto span = [](const torch::Tensor& t) {
      return std::span<const float>(t.data_ptr<float>(), static_cast<std::size_t>(t.numel()));
    };
    const torch::Tensor factors = source.index_select(0, edges.from) * edge.narrow(0, 0, count);
    torch::Tensor expected =
        torch::zeros({kTargets, dim})
            .index_add_(0, edges.to,
                        x.narrow(1, 0, dim).index_select(0, edges.from) * factors.unsqueeze(1)) *
        target.unsqueeze(1);
    expected.narrow(0, 0, kTargets / 2).add_(start.narrow(1, 0, dim) * start_scale.unsqueeze(1));
    const RowsView rows{.type = RowType::kFloat32,
                        .x = x.data_ptr(),
                        .dim = static_cast<std::size_t>(dim),
                        .stride = static_cast<std::size_t>(dim + 5)};
    torch::Tensor first;
    for (const SimdPath path : AvailableSimdPaths()) {
      torch::Tensor out = torch::full({kTargets, dim + 1}, 7.0F);
      const SumArgs args = MakeSumArgs(
          csr.view(), {.target = span(target), .source = span(source), .edge = span(edge)}, rows,
          {.rows = start.data_ptr<float>(),
           .stride = static_cast<std::size_t>(dim + 2),
           .count = kTargets / 2,
           .scale = span(start_scale)},
          out.data_ptr<float>(), static_cast<std::size_t>(dim + 1));
      KernelsOf(path).sum(args, 0, kTargets);
      EXPECT_TRUE(torch::allclose(out.narrow(1, 0, dim), expected, 1e-4, 1e-5))
          << SimdPathName(path) << ", " << dim << " columns";
      EXPECT_TRUE(out.select(1, dim).eq(7).all().item<bool>()) << "wrote beyond its columns";
      if (!first.defined()) first = out;
      EXPECT_TRUE(SameBits(out, first)) << SimdPathName(path) << ", " << dim << " columns";
    }
  }
}

TEST_F(AggregateTest, ListsInPiecesGiveTheSameBitsAsWhole) {
  std::mt19937_64 random(testing::TestSeed());
  for (const SimdPath path : AvailableSimdPaths()) {
    SetSimdPath(path);
    const Csr csr = RandomLists(200, 100, random);
    const torch::Tensor x = torch::randn({100, 37});
    torch::Tensor whole = torch::empty({200, 37});
    torch::Tensor parts = torch::empty({200, 37});
    torch::Tensor pieces = torch::zeros({200, 37});
    const RowsView rows = RowsView::Floats(x.data_ptr<float>(), 37);
    AggregateRows(csr.view(), {}, rows, 0, 200, whole.data_ptr<float>());
    for (std::size_t begin = 0; begin < 200; begin += 13) {
      AggregateRows(csr.view(), {}, rows, begin, std::min<std::size_t>(begin + 13, 200),
                    parts.data_ptr<float>());
    }
    EXPECT_TRUE(SameBits(whole, parts));
    std::vector<std::uint32_t> middle;
    for (std::size_t t = 0; t < 200; ++t) {
      const std::uint32_t length = csr.offsets[t + 1] - csr.offsets[t];
      middle.push_back(csr.offsets[t] + static_cast<std::uint32_t>(random() % (length + 1)));
    }
    const std::uint32_t* const bounds[] = {csr.offsets.data(), middle.data(),
                                           csr.offsets.data() + 1};
    for (int half = 0; half < 2; ++half) {
      AccumulateRows(200, bounds[half], bounds[half + 1], csr.neighbors.data(), nullptr,
                     x.data_ptr<float>(), 37, pieces.data_ptr<float>());
    }
    EXPECT_TRUE(SameBits(whole, pieces));
  }
}

TEST_F(AggregateTest, WideningIsExactForEveryPatternOfBits) {
  std::vector<std::uint16_t> bits(65536 + 3);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  for (const SimdPath path : AvailableSimdPaths()) {
    std::vector<float> half(bits.size()), bfloat(bits.size());
    KernelsOf(path).widen(RowType::kFloat16, bits.data(), bits.size(), half.data());
    KernelsOf(path).widen(RowType::kBfloat16, bits.data(), bits.size(), bfloat.data());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float expected = HalfToFloat(bits[i]);
      const bool same = std::isnan(expected) ? std::isnan(half[i])
                                             : std::bit_cast<std::uint32_t>(half[i]) ==
                                                   std::bit_cast<std::uint32_t>(expected);
      const std::uint32_t wide = std::uint32_t{bits[i]} << 16;
      wrong += same && std::bit_cast<std::uint32_t>(bfloat[i]) == wide ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0u) << SimdPathName(path);
  }
}

TEST_F(AggregateTest, MaximaEqualScatterReduceAndGoToTheFirstOfEquals) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  for (const std::int64_t dim : kWidths) {
    for (const torch::Dtype dtype : {torch::kFloat32, torch::kHalf, torch::kBFloat16}) {
      const Csr csr = RandomLists(kTargets, kSources, random);
      const EdgeTensors edges = EdgesOf(csr);
      // There are few distinct values, so that many are equal.
      torch::Tensor x = torch::randint(-3, 3, {kSources, dim}).to(dtype);
      const torch::Tensor chosen = x.to(torch::kFloat32).index_select(0, edges.from);
      const torch::Tensor expected = torch::zeros({kTargets, dim})
                                         .scatter_reduce(0, edges.to.unsqueeze(1).expand({-1, dim}),
                                                         chosen, "amax", /*include_self=*/false);
      x.set_requires_grad(true);
      const torch::Tensor weighting = torch::randn({kTargets, dim});
      torch::Tensor gradient = torch::zeros({kSources, dim});
      for (std::size_t t = 0; t < kTargets; ++t) {
        for (std::int64_t d = 0; d < dim; ++d) {
          for (std::uint32_t e = csr.offsets[t]; e < csr.offsets[t + 1]; ++e) {
            const float value = chosen.data_ptr<float>()[e * dim + d];
            if (value != expected.data_ptr<float>()[static_cast<std::int64_t>(t) * dim + d]) {
              continue;
            }
            gradient.data_ptr<float>()[csr.neighbors[e] * dim + d] +=
                weighting.data_ptr<float>()[static_cast<std::int64_t>(t) * dim + d];
            break;
          }
        }
      }
      for (const SimdPath path : AvailableSimdPaths()) {
        SetSimdPath(path);
        const AggregateLists lists(csr.view(), kSources);
        const torch::Tensor out = AggregateMax(x, lists);
        EXPECT_TRUE(torch::equal(out, expected)) << SimdPathName(path) << ", " << dim;
        const torch::Tensor got = torch::autograd::grad({(out * weighting).sum()}, {x})[0];
        EXPECT_EQ(got.scalar_type(), dtype);
        const double tolerance = dtype == torch::kFloat32 ? 1e-5 : 5e-2;
        EXPECT_TRUE(torch::allclose(got.to(torch::kFloat32), gradient, tolerance, tolerance))
            << SimdPathName(path) << ", " << dim;
      }
    }
  }
}

TEST_F(AggregateTest, ANanIsLargerThanEveryNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  Csr csr;
  csr.neighbors = {0, 1, 2, 0, 2};
  csr.offsets = {0, 3, 5, 5};
  for (const std::int64_t dim : {1, 5, 16, 40}) {
    torch::Tensor x = torch::zeros({3, dim});
    x[0].fill_(-infinity);
    x[1].fill_(nan);
    x[2].fill_(infinity);
    for (const SimdPath path : AvailableSimdPaths()) {
      SetSimdPath(path);
      const torch::Tensor out = AggregateMax(x, AggregateLists(csr.view(), 3));
      EXPECT_TRUE(out[0].isnan().all().item<bool>());
      EXPECT_TRUE(out[1].eq(infinity).all().item<bool>());
      EXPECT_TRUE(out[2].eq(0).all().item<bool>()) << "a target without neighbours";
    }
  }
}

/// Returns the gradient of sum(f(leaf) * weighting), computed element by element by difference
/// quotients.
torch::Tensor DifferenceQuotients(const torch::Tensor& leaf, const torch::Tensor& weighting,
                                  const std::function<torch::Tensor(const torch::Tensor&)>& f) {
  const torch::NoGradGuard guard;
  // The step is a power of two, so that adding it to small multiples of itself is exact.
  constexpr float kStep = 0x1p-4F;
  torch::Tensor out = torch::empty_like(leaf);
  for (std::int64_t i = 0; i < leaf.numel(); ++i) {
    torch::Tensor up = leaf.clone(), down = leaf.clone();
    up.view(-1)[i] += kStep;
    down.view(-1)[i] -= kStep;
    const torch::Tensor difference = (f(up) - f(down)).to(torch::kFloat64);
    out.view(-1)[i] = (difference * weighting).sum().item<double>() / (2 * kStep);
  }
  return out;
}

TEST_F(AggregateTest, WeightedSumsAndTheirGradientsEqualIndexAddAndFiniteDifferences) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  for (const std::int64_t dim : {1, 6, 37}) {
    const Csr csr = RandomLists(8, 10, random);
    const EdgeTensors edges = EdgesOf(csr);
    const torch::Tensor x = torch::randn({10, dim}).set_requires_grad(true);
    const torch::Tensor w =
        torch::randn({static_cast<std::int64_t>(csr.neighbors.size())}).set_requires_grad(true);
    const torch::Tensor weighting = torch::randn({8, dim});
    const torch::Tensor expected = torch::zeros({8, dim}).index_add(
        0, edges.to, x.index_select(0, edges.from) * w.unsqueeze(1));
    const auto expected_gradients = torch::autograd::grad({(expected * weighting).sum()}, {x, w});
    const AggregateLists lists(csr.view(), 10);
    std::vector<torch::Tensor> first;
    for (const SimdPath path : AvailableSimdPaths()) {
      SetSimdPath(path);
      const torch::Tensor out = AggregateWeighted(x, w, lists);
      EXPECT_TRUE(torch::allclose(out, expected, 1e-5, 1e-5));
      auto got = torch::autograd::grad({(out * weighting).sum()}, {x, w});
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(torch::allclose(got[i], expected_gradients[i], 1e-4, 1e-5)) << "leaf " << i;
        if (!first.empty()) {
          EXPECT_TRUE(SameBits(got[i], first[i])) << SimdPathName(path);
        }
      }
      if (first.empty()) first = got;
    }
    const auto of_x = [&](const torch::Tensor& rows) { return AggregateWeighted(rows, w, lists); };
    const auto of_w = [&](const torch::Tensor& ws) { return AggregateWeighted(x, ws, lists); };
    EXPECT_TRUE(torch::allclose(first[0], DifferenceQuotients(x, weighting, of_x), 1e-3, 1e-3));
    EXPECT_TRUE(torch::allclose(first[1], DifferenceQuotients(w, weighting, of_w), 1e-3, 1e-3));
  }
}

TEST_F(AggregateTest, MeansWithAnOwnTermHaveTheGradientOfFiniteDifferences) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  const Csr csr = RandomLists(8, 12, random);
  std::vector<float> target, source, self;
  for (int t = 0; t < 8; ++t) target.push_back(static_cast<float>(random() % 8) / 4);
  for (int j = 0; j < 12; ++j) source.push_back(static_cast<float>(random() % 8) / 4);
  for (int t = 0; t < 8; ++t) self.push_back(static_cast<float>(random() % 8) / 4);
  const SumFactors factors{.target = target, .source = source, .self = self};
  const AggregateLists lists(csr.view(), 12);
  const torch::Tensor x = torch::randn({12, 9}).set_requires_grad(true);
  const torch::Tensor weighting = torch::randn({8, 9});
  const auto f = [&](const torch::Tensor& rows) { return AggregateSum(rows, lists, factors); };
  const torch::Tensor got = torch::autograd::grad({(f(x) * weighting).sum()}, {x})[0];
  EXPECT_TRUE(torch::allclose(got, DifferenceQuotients(x, weighting, f), 1e-3, 1e-3));
}

TEST_F(AggregateTest, ThreadsDoNotChangeABit) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  const Csr csr = RandomLists(900, 700, random);
  const torch::Tensor x = torch::randn({900, 40}).set_requires_grad(true);
  const torch::Tensor w = torch::randn({24, 40}).set_requires_grad(true);
  const torch::Tensor weights = torch::randn({static_cast<std::int64_t>(csr.neighbors.size())});
  const Activation activation{.relu = true, .dropout = 0.3, .seed = seed};
  std::vector<torch::Tensor> first;
  for (const std::uint32_t threads : {1, 2, 5}) {
    SetTorchThreads(threads);
    const AggregateLists lists(csr.view(), 900);
    const torch::Tensor out =
        Activate(AggregateSum(Linear({x}, w), lists, {}) + AggregateMax(Linear({x}, w), lists) +
                     AggregateWeighted(Linear({x}, w), weights, lists),
                 activation);
    std::vector<torch::Tensor> got = torch::autograd::grad({out.square().sum()}, {x, w});
    got.push_back(out.detach());
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(SameBits(got[i], first[i])) << threads << " threads, tensor " << i;
    }
    if (first.empty()) first = got;
  }
  SetTorchThreads(1);
}

TEST_F(AggregateTest, TurningTwiceSortsTheLists) {
  std::mt19937_64 random(testing::TestSeed());
  const Csr csr = RandomLists(50, 70, random);
  const TransposedCsr turned = Turn(csr.view(), 70);
  std::size_t k = 0;
  for (std::uint32_t j = 0; j < 70; ++j) {
    for (; k < turned.lists.offsets[j + 1]; ++k) {
      const std::uint32_t e = turned.edges[k];
      EXPECT_EQ(csr.neighbors[e], j);
      const std::uint32_t t = turned.lists.neighbors[k];
      EXPECT_TRUE(csr.offsets[t] <= e && e < csr.offsets[t + 1]);
    }
  }
  EXPECT_EQ(k, csr.neighbors.size());
  EXPECT_EQ(Turn(turned.lists.view(), 50).lists.offsets, csr.offsets);
}

TEST_F(AggregateTest, PiecesCoverAllTargetsAndShareTheEdges) {
  std::mt19937_64 random(testing::TestSeed());
  const Csr csr = RandomLists(3000, 50, random);
  for (const std::size_t pieces : {1, 2, 7, 64}) {
    const std::vector<std::size_t> cuts = SplitByEdges(csr.view(), pieces);
    ASSERT_EQ(cuts.size(), pieces + 1);
    EXPECT_EQ(cuts.front(), 0u);
    EXPECT_EQ(cuts.back(), 3000u);
    const std::size_t work = (csr.neighbors.size() + 3000) / pieces;
    for (std::size_t i = 0; i < pieces; ++i) {
      ASSERT_LE(cuts[i], cuts[i + 1]);
      const std::size_t mine =
          csr.offsets[cuts[i + 1]] - csr.offsets[cuts[i]] + cuts[i + 1] - cuts[i];
      EXPECT_NEAR(static_cast<double>(mine), static_cast<double>(work), 12);
    }
  }
  EXPECT_EQ(SplitByEdges(Csr().view(), 3), (std::vector<std::size_t>{0, 0, 0, 0}));
}

using ActivationTest = SimdPaths;

TEST_F(ActivationTest, ReluEqualsLibtorchAndKeepsNan) {
  torch::manual_seed(testing::TestSeed());
  torch::Tensor x = torch::randn({300, 37});
  x[5][3] = std::numeric_limits<float>::quiet_NaN();
  x[7][1] = -0.0F;
  for (const SimdPath path : AvailableSimdPaths()) {
    SetSimdPath(path);
    const torch::Tensor out = Activate(x, {.relu = true, .dropout = 0, .seed = 0});
    EXPECT_TRUE(out[5][3].isnan().item<bool>());
    EXPECT_TRUE(torch::equal(out.nan_to_num(0), torch::relu(x).nan_to_num(0)));
  }
}

TEST_F(ActivationTest, DropoutKeepsTheShareAndScalesWhatItKeeps) {
  const std::uint64_t seed = testing::TestSeed();
  const torch::Tensor x = torch::ones({4000, 100});
  for (const double rate : {0.1, 0.5, 0.9}) {
    torch::Tensor first;
    for (const SimdPath path : AvailableSimdPaths()) {
      SetSimdPath(path);
      const torch::Tensor out = Activate(x, {.relu = false, .dropout = rate, .seed = seed});
      if (!first.defined()) first = out;
      EXPECT_TRUE(SameBits(out, first)) << SimdPathName(path);
    }
    const torch::Tensor kept = first.ne(0);
    EXPECT_TRUE(
        first.masked_select(kept).eq(static_cast<float>(1 / (1 - rate))).all().item<bool>());
    // The bound is seven standard deviations (a false alarm in 1e-11 runs) for the whole, a row and
    // a column.
    const auto off = [&](const torch::Tensor& part) {
      const auto n = static_cast<double>(part.numel());
      return std::abs(part.sum().item<double>() - n * (1 - rate)) /
             std::sqrt(n * rate * (1 - rate));
    };
    EXPECT_LT(off(kept), 7);
    EXPECT_LT(off(kept.select(1, 17)), 7);
    // Neighbouring elements of a row or a column are dropped together as often as chance predicts.
    const auto together = [&](const torch::Tensor& a, const torch::Tensor& b) {
      const auto n = static_cast<double>(a.numel());
      const double p = (1 - rate) * (1 - rate);
      return std::abs(a.logical_and(b).sum().item<double>() - n * p) / std::sqrt(n * p * (1 - p));
    };
    // Pairs overlap, which widens the spread by less than the square root of two.
    EXPECT_LT(together(kept.narrow(1, 0, 99), kept.narrow(1, 1, 99)), 10);
    EXPECT_LT(together(kept.narrow(0, 0, 3999), kept.narrow(0, 1, 3999)), 10);
  }
}

TEST_F(ActivationTest, TheGradientPassesWhereTheValueDid) {
  const std::uint64_t seed = testing::TestSeed();
  torch::manual_seed(seed);
  const torch::Tensor x = torch::randn({600, 37}).set_requires_grad(true);
  const torch::Tensor weighting = torch::randn({600, 37});
  for (const bool relu : {false, true}) {
    const Activation activation{.relu = relu, .dropout = 0.4, .seed = seed};
    const torch::Tensor out = Activate(x, activation);
    const torch::Tensor factor =
        Activate(torch::ones_like(x), {.relu = false, .dropout = 0.4, .seed = seed}).detach();
    const torch::Tensor expected = (relu ? torch::relu(x) : x) * factor;
    EXPECT_TRUE(torch::allclose(out, expected));
    const torch::Tensor got = torch::autograd::grad({(out * weighting).sum()}, {x})[0];
    const torch::Tensor wanted = torch::autograd::grad({(expected * weighting).sum()}, {x})[0];
    EXPECT_TRUE(torch::allclose(got, wanted)) << relu;
  }
}

TEST(DenseTest, LinearEqualsTheProductOfLibtorch) {
  torch::manual_seed(testing::TestSeed());
  for (const std::int64_t rows : {1, 255, 256, 700}) {
    const torch::Tensor x = torch::randn({rows, 33}).set_requires_grad(true);
    const torch::Tensor w = torch::randn({20, 33}).set_requires_grad(true);
    const torch::Tensor weighting = torch::randn({rows, 20});
    const torch::Tensor out = Linear({x}, w);
    const torch::Tensor expected = torch::mm(x, w.t());
    EXPECT_TRUE(torch::allclose(out, expected, 1e-4, 1e-4));
    const auto got = torch::autograd::grad({(out * weighting).sum()}, {x, w});
    const auto wanted = torch::autograd::grad({(expected * weighting).sum()}, {x, w});
    EXPECT_TRUE(torch::allclose(got[0], wanted[0], 1e-4, 1e-4));
    EXPECT_TRUE(torch::allclose(got[1], wanted[1], 1e-3, 1e-3));
  }
}

/// Products of rows that are read in place, from a wider table of any data type, at random
/// positions.
TEST(DenseTest, RowsAtPlacesHaveTheBitsOfTheirCopies) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  for (const auto& [in, out] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {33, 20}, {300, 100}}) {
    for (const torch::Dtype dtype : {torch::kFloat32, torch::kHalf, torch::kBFloat16}) {
      const torch::Tensor table = RandomRows(500, in, dtype);
      std::vector<std::uint32_t> place(1 + random() % 700);
      for (std::uint32_t& row : place) row = static_cast<std::uint32_t>(random() % 500);
      const LayerRows rows{table, place};
      const torch::Tensor copied = rows.Floats();
      const torch::Tensor w = torch::randn({out, in}).set_requires_grad(true);
      const torch::Tensor at_places = Linear(rows, w);
      const torch::Tensor at_hand = Linear({copied}, w);
      EXPECT_TRUE(SameBits(at_places, at_hand)) << in << " x " << out;
      const torch::Tensor weighting = torch::randn(at_hand.sizes());
      const auto gradient = [&](const torch::Tensor& product) {
        return torch::autograd::grad({(product * weighting).sum()}, {w})[0];
      };
      EXPECT_TRUE(SameBits(gradient(at_places), gradient(at_hand))) << in << " x " << out;
      // The bits of a row do not depend on the rows beside it.
      const std::int64_t row = static_cast<std::int64_t>(random() % place.size());
      EXPECT_TRUE(SameBits(Linear({copied.narrow(0, row, 1)}, w), at_hand.narrow(0, row, 1)));
    }
  }
}

TEST(DenseTest, MultipliedTilesAreTheProductOfLibtorch) {
  torch::manual_seed(testing::TestSeed());
  for (const std::int64_t rows : {0, 1, 256, 300}) {
    const torch::Tensor x = torch::randn({rows, 70});
    const torch::Tensor w = torch::randn({70, 45});  // transposed, as the backward pass has it
    const torch::Tensor bias = torch::randn({45});
    const PackedWeight packed(w.t());
    EXPECT_TRUE(torch::allclose(Multiply(x, packed, {}), torch::mm(x, w), 1e-4, 1e-4));
    EXPECT_TRUE(torch::allclose(Multiply(x, packed, bias), torch::addmm(bias, x, w), 1e-4, 1e-4));
  }
}

TEST(SimdTest, TheSettingIsCheckedAndSaysWhatRuns) {
  const char* const before = std::getenv("RHIZOME_SIMD");
  const std::string saved = before == nullptr ? "" : before;
  setenv("RHIZOME_SIMD", "nonsense", 1);
  const Status status = CheckSimdSetting();
  EXPECT_STATUS(status, kInvalidArgument);
  EXPECT_NE(status.message().find("portable"), std::string::npos) << status.message();
  for (const SimdPath path : AvailableSimdPaths()) {
    setenv("RHIZOME_SIMD", std::string(SimdPathName(path)).c_str(), 1);
    EXPECT_OK(CheckSimdSetting());
  }
  if (before == nullptr) {
    unsetenv("RHIZOME_SIMD");
  } else {
    setenv("RHIZOME_SIMD", saved.c_str(), 1);
  }
}

TEST(GroupByRelationTest, EdgesAreSortedByRelationAndNeighbor) {
  std::mt19937_64 random(testing::TestSeed());
  const Csr csr = RandomLists(200, 40, random);
  std::vector<std::uint16_t> relations;
  std::vector<float> weights;
  for (std::size_t e = 0; e < csr.neighbors.size(); ++e) {
    relations.push_back(static_cast<std::uint16_t>(random() % 4 * 1000));
    weights.push_back(static_cast<float>(random() % 9));
  }
  const GroupedCsr grouped = GroupByRelation(csr.view(), relations, weights);
  ASSERT_EQ(grouped.view().targets(), 200U);
  for (std::size_t t = 0; t < 200; ++t) {
    std::multiset<std::tuple<std::uint16_t, std::uint32_t, float>> expected, got;
    for (std::uint32_t e = csr.offsets[t]; e < csr.offsets[t + 1]; ++e)
      expected.emplace(relations[e], csr.neighbors[e], weights[e]);
    for (std::uint32_t g = grouped.group_begin[t]; g < grouped.group_begin[t + 1]; ++g) {
      EXPECT_LT(grouped.lists.offsets[g], grouped.lists.offsets[g + 1]);
      if (g > grouped.group_begin[t]) {
        EXPECT_LT(grouped.relation[g - 1], grouped.relation[g]);
      }
      for (std::uint32_t e = grouped.lists.offsets[g]; e < grouped.lists.offsets[g + 1]; ++e) {
        if (e > grouped.lists.offsets[g]) {
          EXPECT_LE(grouped.lists.neighbors[e - 1], grouped.lists.neighbors[e]);
        }
        got.emplace(grouped.relation[g], grouped.lists.neighbors[e], grouped.weights[e]);
      }
    }
    EXPECT_EQ(got, expected);
  }
  // Without relations each list is one group.
  const GroupedCsr plain = GroupByRelation(csr.view(), {});
  for (std::size_t t = 0; t < 200; ++t)
    EXPECT_EQ(plain.group_begin[t + 1] - plain.group_begin[t],
              csr.offsets[t] == csr.offsets[t + 1] ? 0U : 1U);
  EXPECT_EQ(plain.lists.neighbors.size(), csr.neighbors.size());
}

}  // namespace
}  // namespace rhizome
