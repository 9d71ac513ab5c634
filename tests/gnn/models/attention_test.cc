#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>

#include "cache/kernels/simd.h"
#include "gnn/models/lists_testing.h"
#include "gnn/ops/activation.h"
#include "gnn/ops/attention_ops.h"
#include "gnn/ops/head_dots.h"
#include "gnn/ops/torch_threads.h"
#include "testing/testing.h"

// Tests of additive attention (GAT) and Gatv2 attention over neighbour lists: values and gradients
// against libtorch in double precision in every SIMD path, large scores, half precision, dropout,
// and the size of temporary tensors.

namespace rhizome {
namespace {

using testing::RandomLists;
using testing::SameBits;

constexpr std::int64_t kAttendTargets = 30;
constexpr std::int64_t kAttendSources = 50;

/// Restores the SIMD path and the number of threads at the end of each test.
class AttentionTest : public ::testing::Test {
 protected:
  void TearDown() override {
    SetSimdPath(before_);
    SetTorchThreads(1);
  }
  const SimdPath before_ = CurrentSimdPath();
};

/// Inputs of additive or Gatv2 attention. `leaves` holds values, source scores and target scores
/// (additive), or values, target rows and attention vectors (Gatv2).
struct Case {
  bool v2 = false;
  AttentionShape shape;
  Csr csr;
  std::vector<torch::Tensor> leaves;
  torch::Tensor weighting;  // [targets, heads * width]

  std::int64_t width() const { return leaves[0].size(1) / shape.heads; }
  torch::Tensor Run(const AggregateLists& lists) const {
    return v2 ? AttendGatv2(leaves[0], leaves[1], leaves[2], lists, shape)
              : Attend(leaves[0], leaves[1], leaves[2], lists, shape);
  }
};

Case MakeCase(bool v2, std::int64_t width, const AttentionShape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  Case c{.v2 = v2, .shape = shape, .csr = {}, .leaves = {}, .weighting = {}};
  c.csr = RandomLists(kAttendTargets, kAttendSources, random);
  const std::int64_t dim = shape.heads * width;
  c.leaves = {torch::randn({kAttendSources, dim})};
  if (v2) {
    c.leaves.push_back(torch::randn({kAttendTargets, dim}));
    c.leaves.push_back(torch::randn({shape.heads, width}));
  } else {
    c.leaves.push_back(torch::randn({kAttendSources, shape.heads}) * 2);
    c.leaves.push_back(torch::randn({kAttendTargets, shape.heads}) * 2);
  }
  for (torch::Tensor& leaf : c.leaves) leaf.set_requires_grad(true);
  c.weighting = torch::randn({kAttendTargets, dim});
  return c;
}

/// Computes the attention in double precision from one tensor row for each edge; libtorch computes
/// its gradients.
torch::Tensor InDouble(const Case& c, const std::vector<torch::Tensor>& leaves) {
  const std::int64_t heads = c.shape.heads;
  std::vector<std::int64_t> to, from, place;
  for (std::int64_t t = 0; t < kAttendTargets; ++t) {
    const std::uint32_t begin = c.csr.offsets[static_cast<std::size_t>(t)];
    const std::uint32_t end = c.csr.offsets[static_cast<std::size_t>(t) + 1];
    if (c.shape.own) to.push_back(t), from.push_back(t), place.push_back(0);
    for (std::uint32_t e = begin; e < end; ++e) {
      to.push_back(t);
      from.push_back(c.csr.neighbors[e]);
      place.push_back(e - begin + 1);
    }
  }
  const torch::Tensor target = torch::tensor(to), source = torch::tensor(from);
  const torch::Tensor rows =
      leaves[0].view({kAttendSources, heads, -1}).index_select(0, source);  // [edges, heads, width]
  torch::Tensor scores;
  if (c.v2) {
    const torch::Tensor query = leaves[1].view({kAttendTargets, heads, -1}).index_select(0, target);
    scores = (torch::leaky_relu(rows + query, c.shape.slope) * leaves[2]).sum(2);
  } else {
    scores = torch::leaky_relu(
        leaves[1].index_select(0, source) + leaves[2].index_select(0, target), c.shape.slope);
  }
  const torch::Tensor powers = torch::exp(scores);
  const torch::Tensor sums =
      torch::zeros({kAttendTargets, heads}, torch::kFloat64).index_add(0, target, powers);
  torch::Tensor weights = powers / sums.index_select(0, target);
  if (c.shape.dropout > 0) {
    // Dropout draws the same random numbers as an activation with this number of columns.
    const std::int64_t columns = torch::tensor(place).max().item<std::int64_t>() + 1;
    const torch::Tensor kept =
        Activate(torch::ones({kAttendTargets, columns * heads}),
                 {.relu = false, .dropout = c.shape.dropout, .seed = c.shape.seed});
    weights = weights * kept.view({kAttendTargets, columns, heads})
                            .index({target, torch::tensor(place)})
                            .to(torch::kFloat64);
  }
  return torch::zeros({kAttendTargets, heads, c.width()}, torch::kFloat64)
      .index_add(0, target, rows * weights.unsqueeze(2))
      .view({kAttendTargets, -1});
}

/// Returns the gradients of all leaves, then the values.
std::vector<torch::Tensor> RunWithGradients(const Case& c) {
  const AggregateLists lists(c.csr.view(), kAttendSources);
  const torch::Tensor out = c.Run(lists);
  std::vector<torch::Tensor> all = torch::autograd::grad({(out * c.weighting).sum()}, c.leaves);
  all.push_back(out.detach());
  return all;
}

struct Heads {
  std::int64_t heads, width;
};
constexpr Heads kHeads[] = {{1, 1}, {1, 7}, {8, 8}, {4, 16}, {3, 5}, {2, 70}, {17, 3}, {1, 300}};

/// Expects values and gradients to be within `error` of those in double precision, and to have the
/// same bits in all SIMD paths.
void ExpectAsInDouble(const Case& c, double error) {
  std::vector<torch::Tensor> leaves;
  for (const torch::Tensor& leaf : c.leaves)
    leaves.push_back(leaf.detach().to(torch::kFloat64).set_requires_grad(true));
  const torch::Tensor expected = InDouble(c, leaves);
  std::vector<torch::Tensor> wanted =
      torch::autograd::grad({(expected * c.weighting).sum()}, leaves);
  wanted.push_back(expected.detach());
  std::vector<torch::Tensor> first;
  for (const SimdPath path : AvailableSimdPaths()) {
    SetSimdPath(path);
    const std::vector<torch::Tensor> got = RunWithGradients(c);
    if (first.empty()) first = got;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(torch::allclose(got[i].to(torch::kFloat64), wanted[i], 1e-3, error))
          << (c.v2 ? "v2 " : "additive ") << c.shape.heads << "x" << c.width() << " own "
          << c.shape.own << " dropout " << c.shape.dropout << " tensor " << i << ", off by "
          << (got[i] - wanted[i]).abs().max().item<double>();
      EXPECT_TRUE(SameBits(got[i], first[i])) << SimdPathName(path) << ", tensor " << i;
    }
  }
}

TEST_F(AttentionTest, ValuesAndGradientsEqualLibtorchInDoubleInEveryPath) {
  const std::uint64_t seed = testing::TestSeed();
  for (const bool v2 : {false, true}) {
    for (const auto& [heads, width] : kHeads) {
      for (const bool own : {false, true}) {
        for (const double dropout : {0.0, 0.4}) {
          const AttentionShape shape{
              .heads = heads, .slope = 0.2, .own = own, .dropout = dropout, .seed = seed};
          ExpectAsInDouble(MakeCase(v2, width, shape, seed), 3e-4);
        }
      }
    }
  }
}

// exp(89) exceeds the range of float32.
TEST_F(AttentionTest, ScoresFarApartOverflowNowhere) {
  const std::uint64_t seed = testing::TestSeed();
  for (const bool own : {false, true}) {
    const AttentionShape shape{.heads = 4, .slope = 1, .own = own, .dropout = 0, .seed = seed};
    Case additive = MakeCase(false, 8, shape, seed);
    additive.leaves[1] = (additive.leaves[1].detach().sign() * 80).set_requires_grad(true);
    ExpectAsInDouble(additive, 3e-4);
    Case v2 = MakeCase(true, 8, shape, seed);
    v2.leaves[2] = (v2.leaves[2].detach() * 30).set_requires_grad(true);
    ExpectAsInDouble(v2, 3e-2);
  }
}

TEST_F(AttentionTest, ThreadsDoNotChangeABit) {
  const std::uint64_t seed = testing::TestSeed();
  for (const bool v2 : {false, true}) {
    const Case c = MakeCase(
        v2, 16, {.heads = 4, .slope = 0.2, .own = true, .dropout = 0.5, .seed = seed}, seed);
    std::vector<torch::Tensor> first;
    for (const std::uint32_t threads : {1, 2, 4}) {
      SetTorchThreads(threads);
      const std::vector<torch::Tensor> got = RunWithGradients(c);
      if (first.empty()) first = got;
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(SameBits(got[i], first[i])) << i;
    }
  }
}

TEST_F(AttentionTest, HalfPrecisionIsReadAsItsFloats) {
  for (const bool v2 : {false, true}) {
    for (const bool own : {false, true}) {
      Case c = MakeCase(v2, 9, {.heads = 2, .slope = 0.2, .own = own}, testing::TestSeed());
      for (const torch::Dtype dtype : {torch::kHalf, torch::kBFloat16}) {
        const torch::Tensor half = c.leaves[0].detach().to(dtype);
        c.leaves[0] = half.to(torch::kFloat32);
        const AggregateLists lists(c.csr.view(), kAttendSources);
        const torch::Tensor expected = c.Run(lists).detach();
        c.leaves[0] = half;
        EXPECT_TRUE(SameBits(c.Run(lists).detach(), expected)) << "with gradients";
        const torch::NoGradGuard guard;
        EXPECT_TRUE(SameBits(c.Run(lists), expected));
      }
    }
  }
}

TEST_F(AttentionTest, DropoutKeepsTheShareAndTheMean) {
  // Scores are equal and rows are ones, so each result is the share of kept weights, scaled.
  constexpr std::int64_t kMany = 2000, kDegree = 20, kHeads = 4;
  Csr csr;
  for (std::int64_t t = 0; t < kMany; ++t) {
    for (std::int64_t i = 0; i < kDegree; ++i) csr.neighbors.push_back(0);
    csr.offsets.push_back(static_cast<std::uint32_t>(csr.neighbors.size()));
  }
  const AggregateLists lists(csr.view(), 1);
  const std::uint64_t seed = testing::TestSeed();
  const auto run = [&](double rate, std::uint64_t with) {
    return Attend(torch::ones({1, kHeads}), torch::zeros({1, kHeads}),
                  torch::zeros({kMany, kHeads}), lists,
                  {.heads = kHeads, .slope = 0.2, .own = false, .dropout = rate, .seed = with});
  };
  for (const double rate : {0.1, 0.6}) {
    const torch::Tensor out = run(rate, seed);
    const torch::Tensor kept = (out * kDegree * (1 - rate)).round();  // of a target and head
    EXPECT_TRUE(torch::allclose(kept / (kDegree * (1 - rate)), out, 1e-4, 1e-4));
    const double n = kMany * kDegree * kHeads;
    // Seven standard deviations: a false alarm in 1e-11 runs.
    EXPECT_LT(std::abs(kept.sum().item<double>() - n * (1 - rate)),
              7 * std::sqrt(n * rate * (1 - rate)));
    const double variance = kept.to(torch::kFloat64).var().item<double>();
    EXPECT_NEAR(variance / (kDegree * rate * (1 - rate)), 1, 0.2) << "draws hang together";
    EXPECT_TRUE(torch::equal(out, run(rate, seed)));
    EXPECT_FALSE(torch::equal(out, run(rate, seed + 1)));
    EXPECT_FALSE(torch::equal(out.select(1, 0), out.select(1, 1))) << "heads draw alike";
  }
}

/// Forwards requests to the default allocator and records the largest.
class WatchingAllocator final : public c10::Allocator {
 public:
  WatchingAllocator() : next_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 1); }
  ~WatchingAllocator() override { c10::SetCPUAllocator(next_, 1); }
  c10::DataPtr allocate(std::size_t bytes) override {
    std::size_t before = largest_;
    while (bytes > before && !largest_.compare_exchange_weak(before, bytes)) {
    }
    return next_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return next_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  std::size_t largest() const { return largest_; }

 private:
  c10::Allocator* const next_;
  std::atomic<std::size_t> largest_ = 0;
};

TEST_F(AttentionTest, NoTensorHasEdgesTimesColumns) {
  std::mt19937_64 random(testing::TestSeed());
  for (const bool v2 : {false, true}) {
    Case c =
        MakeCase(v2, 16, {.heads = 4, .slope = 0.2, .own = true, .dropout = 0.3, .seed = 1}, 1);
    c.csr = Csr();
    for (std::int64_t t = 0; t < kAttendTargets; ++t) {
      for (int i = 0; i < 700; ++i) {
        c.csr.neighbors.push_back(static_cast<std::uint32_t>(random() % kAttendSources));
      }
      c.csr.offsets.push_back(static_cast<std::uint32_t>(c.csr.neighbors.size()));
    }
    const std::size_t edges = c.csr.neighbors.size();
    const WatchingAllocator watched;
    RunWithGradients(c);
    EXPECT_EQ(watched.largest(), edges * 4 * sizeof(float)) << "one number an edge and head";
  }
}

TEST_F(AttentionTest, HeadDotsEqualLibtorchWithTheirGradients) {
  torch::manual_seed(testing::TestSeed());
  for (const auto& [heads, width] : kHeads) {
    for (const std::int64_t rows : {1, 33, 700}) {
      const torch::Tensor z = torch::randn({rows, heads * width}).set_requires_grad(true);
      const torch::Tensor vectors = torch::randn({heads, width}).set_requires_grad(true);
      const torch::Tensor weighting = torch::randn({rows, heads});
      const torch::Tensor expected = (z.view({rows, heads, width}) * vectors).sum(2);
      const auto wanted = torch::autograd::grad({(expected * weighting).sum()}, {z, vectors});
      std::vector<torch::Tensor> first;
      for (const std::uint32_t threads : {1, 3}) {
        SetTorchThreads(threads);
        const torch::Tensor out = HeadDots(z, vectors);
        EXPECT_TRUE(torch::allclose(out, expected, 1e-4, 1e-4));
        auto got = torch::autograd::grad({(out * weighting).sum()}, {z, vectors});
        EXPECT_TRUE(torch::allclose(got[0], wanted[0], 1e-4, 1e-4));
        EXPECT_TRUE(torch::allclose(got[1], wanted[1], 1e-3, 1e-3));
        got.push_back(out.detach());
        for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(SameBits(got[i], first[i]));
        if (first.empty()) first = got;
      }
      std::vector<float> part(static_cast<std::size_t>(heads));
      HeadDotsOfRows(RowsOf(z.detach().narrow(0, rows - 1, 1)), 1, vectors.detach(), part.data());
      EXPECT_EQ(std::memcmp(part.data(), first[2][rows - 1].data_ptr(), part.size() * 4), 0);
    }
  }
}

TEST_F(AttentionTest, WrongShapesAreNamed) {
  const Case c = MakeCase(false, 4, {.heads = 2}, 1);
  const AggregateLists lists(c.csr.view(), kAttendSources);
  const auto message = [&](const torch::Tensor& source, const AttentionShape& shape) {
    try {
      Attend(c.leaves[0], source, c.leaves[2], lists, shape);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  EXPECT_EQ(message(c.leaves[1], c.shape), "");
  EXPECT_NE(message(c.leaves[2], c.shape).find("scores of sources"), std::string::npos);
  EXPECT_NE(message(c.leaves[1], {.heads = 3}).find("multiple of 3"), std::string::npos);
  EXPECT_NE(message(c.leaves[1], {.heads = 0}).find("heads"), std::string::npos);
  EXPECT_NE(message(c.leaves[1], {.heads = 2, .slope = 2}).find("slope"), std::string::npos);
  AttentionShape all_dropped{.heads = 2};
  all_dropped.dropout = 1;
  EXPECT_NE(message(c.leaves[1], all_dropped).find("dropout"), std::string::npos);
}

}  // namespace
}  // namespace rhizome
