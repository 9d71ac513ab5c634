#include <cmath>
#include <random>

#include "cache/kernels/simd.h"
#include "gnn/models/lists_testing.h"
#include "gnn/ops/attention_passes.h"
#include "gnn/ops/torch_threads.h"
#include "testing/testing.h"

// Tests of both passes of attention by dot products over neighbour lists: results and gradients
// against libtorch in double precision in every SIMD path, large scores, threads.

namespace rhizome {
namespace {

using testing::RandomLists;
using testing::SameBits;

constexpr std::int64_t kDotTargets = 30;
constexpr std::int64_t kDotSources = 50;

/// Restores the SIMD path and the number of threads at the end of each test.
class DotAttentionTest : public ::testing::Test {
 protected:
  void TearDown() override {
    SetSimdPath(before_);
    SetTorchThreads(1);
  }
  const SimdPath before_ = CurrentSimdPath();
};

struct DotCase {
  AttentionShape shape;
  Csr csr;
  torch::Tensor rows;    // keys and values
  torch::Tensor query;   // [targets, heads * width]
  torch::Tensor of_out;  // gradient of the result

  std::int64_t dim() const { return query.size(1); }
};

DotCase MakeDotCase(std::int64_t width, const AttentionShape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  const std::int64_t dim = shape.heads * width;
  return {.shape = shape,
          .csr = RandomLists(kDotTargets, kDotSources, random),
          .rows = torch::randn({kDotSources, 2 * dim}),
          .query = torch::randn({kDotTargets, dim}) / std::sqrt(width),
          .of_out = torch::randn({kDotTargets, dim})};
}

/// Computes the result densely in double precision: [targets, sources, heads] scores, in which a
/// source counts as often as it is in the list. Without dropout.
torch::Tensor DotInDouble(const DotCase& c, const torch::Tensor& rows, const torch::Tensor& query) {
  torch::Tensor counts = torch::zeros({kDotTargets, kDotSources}, torch::kFloat64);
  for (std::int64_t t = 0; t < kDotTargets; ++t) {
    const auto at = static_cast<std::size_t>(t);
    for (std::uint32_t e = c.csr.offsets[at]; e < c.csr.offsets[at + 1]; ++e)
      counts[t][c.csr.neighbors[e]] += 1;
  }
  const torch::Tensor keys = rows.narrow(1, 0, c.dim()).view({kDotSources, c.shape.heads, -1});
  const torch::Tensor values = rows.narrow(1, c.dim(), c.dim()).view(keys.sizes());
  const torch::Tensor queries = query.view({kDotTargets, c.shape.heads, -1});
  const torch::Tensor powers =
      torch::exp(torch::einsum("thc,jhc->tjh", {queries, keys})) * counts.unsqueeze(2);
  const torch::Tensor sums = powers.sum(1);  // [targets, heads]
  const torch::Tensor safe = torch::where(sums > 0, sums, torch::ones_like(sums));
  return torch::einsum("tjh,jhc->thc", {powers / safe.unsqueeze(1), values})
      .reshape({kDotTargets, -1});
}

/// Returns the gradients of rows and query, then the result.
std::vector<torch::Tensor> RunDot(const DotCase& c) {
  const AggregateLists lists(c.csr.view(), kDotSources);
  const AttentionInputs in{c.rows, {}, c.query, {}};
  const Attended made = AttendForward(in, lists, c.shape);
  const torch::Tensor dots =
      (made.out * c.of_out).view({kDotTargets, c.shape.heads, -1}).sum(2).contiguous();
  const AttentionGradient of(in, made, {.out = c.of_out, .dots = dots}, lists, c.shape);
  torch::Tensor of_rows = torch::empty_like(c.rows);
  of.OfSources(0, 0, kDotSources, c.rows.data_ptr<float>(), of_rows.data_ptr<float>());
  return {of_rows, of.Targets().query, made.out};
}

/// Expects results and gradients to be within `error` of those in double precision, and to have the
/// same bits in all SIMD paths.
void ExpectDotAsInDouble(const DotCase& c, double error) {
  std::vector<torch::Tensor> leaves;
  for (const torch::Tensor& leaf : {c.rows, c.query})
    leaves.push_back(leaf.to(torch::kFloat64).set_requires_grad(true));
  const torch::Tensor made = DotInDouble(c, leaves[0], leaves[1]);
  std::vector<torch::Tensor> wanted = torch::autograd::grad({(made * c.of_out).sum()}, leaves);
  wanted.push_back(made.detach());
  std::vector<torch::Tensor> first;
  for (const SimdPath path : AvailableSimdPaths()) {
    SetSimdPath(path);
    const std::vector<torch::Tensor> got = RunDot(c);
    if (first.empty()) first = got;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(torch::allclose(got[i].to(torch::kFloat64), wanted[i], 1e-3, error))
          << c.shape.heads << " heads, " << c.dim() << " columns, tensor " << i << ", off by "
          << (got[i] - wanted[i]).abs().max().item<double>();
      EXPECT_TRUE(SameBits(got[i], first[i])) << SimdPathName(path) << ", tensor " << i;
    }
  }
}

struct DotHeadsCase {
  std::int64_t heads, width;
};
constexpr DotHeadsCase kDotHeads[] = {{1, 1}, {1, 7},  {8, 8},  {4, 64},
                                      {3, 5}, {2, 70}, {17, 3}, {1, 300}};

TEST_F(DotAttentionTest, ResultsAndGradientsEqualLibtorchInDoubleInEveryPath) {
  const std::uint64_t seed = testing::TestSeed();
  for (const auto& [heads, width] : kDotHeads) {
    ExpectDotAsInDouble(MakeDotCase(width, {.heads = heads}, seed), 3e-4);
  }
}

// exp(89) exceeds the range of float32.
TEST_F(DotAttentionTest, ScoresFarApartOverflowNowhere) {
  const std::uint64_t seed = testing::TestSeed();
  DotCase c = MakeDotCase(8, {.heads = 4}, seed);
  c.query = c.query.sign() * 40;
  ExpectDotAsInDouble(c, 3e-2);
}

TEST_F(DotAttentionTest, ThreadsDoNotChangeABit) {
  const std::uint64_t seed = testing::TestSeed();
  const DotCase c = MakeDotCase(16, {.heads = 4, .dropout = 0.5, .seed = seed}, seed);
  std::vector<torch::Tensor> first;
  for (const std::uint32_t threads : {1, 2, 4}) {
    SetTorchThreads(threads);
    const std::vector<torch::Tensor> got = RunDot(c);
    if (first.empty()) first = got;
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(SameBits(got[i], first[i])) << i;
  }
}

TEST_F(DotAttentionTest, TargetsWithoutEdgesGetZeros) {
  DotCase c = MakeDotCase(3, {.heads = 2}, testing::TestSeed());
  c.csr = Csr{.offsets = std::vector<std::uint32_t>(kDotTargets + 1, 0), .neighbors = {}};
  const std::vector<torch::Tensor> got = RunDot(c);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(got[i].abs().max().item<float>(), 0) << i;
}

}  // namespace
}  // namespace rhizome
