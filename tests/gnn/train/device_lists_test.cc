#include <gmock/gmock.h>

#include <random>

#include "cuda/fake_device.h"
#include "gnn/ops/activation.h"
#include "gnn/ops/attention_ops.h"
#include "gnn/ops/layer_graph.h"
#include "testing/testing.h"

// Tests that operations over neighbour lists on a device (a FakeDevice here) have the same bits as
// on the CPU, or are close to them: sums over long lists in pieces, both kinds of attention and
// dropout, with their gradients.

namespace rhizome {
namespace {

/// Returns lists of a few edges and lists of hubs, one of them longer than a piece.
Csr ListsWithHubs(std::mt19937_64& random, std::size_t sources) {
  Csr csr;
  for (const std::size_t degree : {3, 0, 129, 1024, 7, 2500}) {
    for (std::size_t i = 0; i < degree; ++i)
      csr.neighbors.push_back(static_cast<std::uint32_t>(random() % sources));
    csr.offsets.push_back(static_cast<std::uint32_t>(csr.neighbors.size()));
  }
  return csr;
}

struct SumAndGradient {
  torch::Tensor sum, gradient;
};
SumAndGradient SumOf(const LayerGraph& graph, const torch::Tensor& rows) {
  const torch::Tensor x = rows.clone().requires_grad_();
  const torch::Tensor sum = AggregateSum(x, graph.lists, graph.factors());
  (sum * sum).sum().backward();
  return {sum.detach(), x.grad()};
}

// Six sources have all edges, so that the transposed lists, which the gradient uses, are long, too.
TEST(DeviceListsTest, LongListsGoUpInPiecesWithTheirTranspose) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  constexpr std::int64_t kSources = 6;
  const Csr csr = ListsWithHubs(random, kSources);
  std::vector<float> weights(csr.neighbors.size());
  for (float& weight : weights) weight = static_cast<float>(random() % 100) / 64;
  LayerGraph graph{.lists = AggregateLists(csr.view(), kSources, weights),
                   .target_scale = std::vector<float>(csr.view().targets(), 0.5F),
                   .source_scale = {},
                   .self_scale = {}};
  const torch::Tensor rows = torch::rand({kSources, 5});
  const SumAndGradient expected = SumOf(graph, rows);

  auto fake = std::make_unique<testing::FakeDevice>(seed);
  fake->has_tensors = true;
  testing::FakeDevice& watched = *fake;
  const ComputeDevice device{.kernels = std::move(fake)};
  {
    DeviceUploads uploads(device);
    PlaceOnDevice(std::span(&graph, 1), uploads);
    // lists of 129 and 1,024 edges, and one of three pieces
    EXPECT_EQ(graph.lists.placed_long_lists().pieces.size(), 5U);
    EXPECT_EQ(graph.lists.placed_long_lists().partial_count, 3U);
    EXPECT_GE(graph.lists.placed_transpose().long_lists.pieces.size(), 6U);
    const SumAndGradient found = SumOf(graph, rows);
    ASSERT_OK(watched.Drain(kDefaultStream));
    EXPECT_TRUE(torch::equal(found.sum, expected.sum));
    EXPECT_TRUE(torch::equal(found.gradient, expected.gradient));
    graph = {};
  }
  EXPECT_THAT(watched.faults(), ::testing::IsEmpty());
}

torch::Tensor Noise(std::mt19937_64& random, std::int64_t rows, std::int64_t columns) {
  torch::Tensor made = at::empty({rows, columns});
  std::normal_distribution<float> noise;
  for (std::int64_t i = 0; i < made.numel(); ++i) made.data_ptr<float>()[i] = noise(random);
  return made;
}

/// Returns the output of an attention and the gradients of its three inputs.
std::vector<torch::Tensor> AttendedOf(const AggregateLists& lists, const AttentionShape& shape,
                                      const std::vector<torch::Tensor>& inputs,
                                      AttendScore score = AttendScore::kAdditive) {
  std::vector<torch::Tensor> given;
  for (const torch::Tensor& input : inputs) given.push_back(input.clone().requires_grad_());
  const auto attend = score == AttendScore::kAdditive ? Attend : AttendGatv2;
  const torch::Tensor out = attend(given[0], given[1], given[2], lists, shape);
  (out * out).sum().backward();
  return {out.detach(), given[0].grad(), given[1].grad(), given[2].grad()};
}

TEST(DeviceListsTest, AttentionHasTheProcessorsBitsWithItsGradientOverTurnedLists) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    const AttentionShape shape{.heads = static_cast<std::int64_t>(1 + random() % 4),
                               .slope = 0.2,
                               .own = random() % 2 == 0,
                               .dropout = random() % 2 == 0 ? 0 : 0.4,
                               .seed = random()};
    const auto width = static_cast<std::int64_t>(1 + random() % 20);
    constexpr std::int64_t kSources = 40;
    const Csr csr = ListsWithHubs(random, kSources);
    LayerGraph graph{.lists = AggregateLists(csr.view(), kSources, {}),
                     .target_scale = {},
                     .source_scale = {},
                     .self_scale = {}};
    const std::vector<torch::Tensor> inputs = {Noise(random, kSources, shape.heads * width),
                                               Noise(random, kSources, shape.heads),
                                               Noise(random, graph.targets(), shape.heads)};
    const std::vector<torch::Tensor> expected = AttendedOf(graph.lists, shape, inputs);

    auto fake = std::make_unique<testing::FakeDevice>(random());
    fake->has_tensors = true;
    testing::FakeDevice& watched = *fake;
    const ComputeDevice device{.kernels = std::move(fake)};
    {
      DeviceUploads uploads(device);
      PlaceOnDevice(std::span(&graph, 1), uploads);
      const std::uint64_t calls = watched.calls();
      const std::vector<torch::Tensor> found = AttendedOf(graph.lists, shape, inputs);
      ASSERT_OK(watched.Drain(kDefaultStream));
      EXPECT_GE(watched.calls(), calls + 2);  // forward and backward pass
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(torch::equal(found[i], expected[i])) << seed << ", tensor " << i;
      graph = {};
    }
    EXPECT_THAT(watched.faults(), ::testing::IsEmpty());
  }
}

TEST(DeviceListsTest, AttentionV2HasTheProcessorsBitsAndItsGradientIsNear) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const AttentionShape shape{.heads = static_cast<std::int64_t>(1 + random() % 4),
                               .slope = 0.2,
                               .own = random() % 2 == 0,
                               .dropout = random() % 2 == 0 ? 0 : 0.4,
                               .seed = random()};
    const auto width = static_cast<std::int64_t>(1 + random() % 20);
    constexpr std::int64_t kSources = 40;
    Csr csr;
    for (const std::size_t degree : {3, 0, 30, 7, 12, 1}) {
      for (std::size_t i = 0; i < degree; ++i)
        csr.neighbors.push_back(static_cast<std::uint32_t>(random() % kSources));
      csr.offsets.push_back(static_cast<std::uint32_t>(csr.neighbors.size()));
    }
    LayerGraph graph{.lists = AggregateLists(csr.view(), kSources, {}),
                     .target_scale = {},
                     .source_scale = {},
                     .self_scale = {}};
    const std::vector<torch::Tensor> inputs = {Noise(random, kSources, shape.heads * width),
                                               Noise(random, graph.targets(), shape.heads * width),
                                               Noise(random, shape.heads, width)};
    const std::vector<torch::Tensor> expected =
        AttendedOf(graph.lists, shape, inputs, AttendScore::kGatv2);
    auto fake = std::make_unique<testing::FakeDevice>(random());
    fake->has_tensors = true;
    testing::FakeDevice& watched = *fake;
    const ComputeDevice device{.kernels = std::move(fake)};
    {
      DeviceUploads uploads(device);
      PlaceOnDevice(std::span(&graph, 1), uploads);
      const std::vector<torch::Tensor> found =
          AttendedOf(graph.lists, shape, inputs, AttendScore::kGatv2);
      ASSERT_OK(watched.Drain(kDefaultStream));
      EXPECT_TRUE(torch::equal(found[0], expected[0])) << seed;
      for (std::size_t i = 1; i < found.size(); ++i) {
        const double largest = std::max(1.0, expected[i].abs().max().item<double>());
        EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-4 * largest)
            << seed << ", tensor " << i;
      }
      graph = {};
    }
    EXPECT_THAT(watched.faults(), ::testing::IsEmpty());
  }
}

TEST(DeviceActivationTest, DropsWhatTheProcessorDropsWithItsGradient) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  testing::FakeDevice device(seed);
  device.has_tensors = true;
  for (int round = 0; round < 40; ++round) {
    Activation activation{.relu = random() % 2 == 0,
                          .dropout = random() % 4 == 0 ? 0 : 0.1 * double(1 + random() % 9),
                          .seed = random(),
                          .first_row = static_cast<std::int64_t>(random() >> 24)};
    const auto rows = static_cast<std::int64_t>(random() % 70);
    const torch::Tensor in = Noise(random, rows, static_cast<std::int64_t>(1 + random() % 80));
    const torch::Tensor gradient = Noise(random, rows, in.size(1));
    const auto run = [&] {
      const torch::Tensor x = in.clone().requires_grad_();
      const torch::Tensor out = Activate(x, activation);
      if (!activation.none()) out.backward(gradient);
      return std::pair(out.detach(), x.grad());
    };
    const auto expected = run();
    activation.device = &device;
    const std::uint64_t calls = device.calls();
    const auto found = run();
    if (activation.none()) continue;
    EXPECT_EQ(device.calls(), calls + 2);
    EXPECT_TRUE(at::equal(found.first, expected.first)) << seed << " " << round;
    EXPECT_TRUE(at::equal(found.second, expected.second)) << seed << " " << round;
  }
  EXPECT_THAT(device.faults(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace rhizome
