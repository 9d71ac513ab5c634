#include <gmock/gmock.h>

#include <random>

#include "cuda/fake_device.h"
#include "rhizome/gnn/layer_graph.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

/// Lists of a few edges and those of hubs, one of which has more than a piece.
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

// Six sources have all edges, so that the lists of the gradient are long, too.
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
    EXPECT_EQ(graph.lists.placed_long_lists().pieces.size(), 5U);  // 129, 1,024, and three
    EXPECT_EQ(graph.lists.placed_long_lists().partial_count, 3U);
    EXPECT_GE(graph.lists.placed_turned().long_lists.pieces.size(), 6U);
    const SumAndGradient found = SumOf(graph, rows);
    ASSERT_OK(watched.Drain(kDefaultStream));
    EXPECT_TRUE(torch::equal(found.sum, expected.sum));
    EXPECT_TRUE(torch::equal(found.gradient, expected.gradient));
    graph = {};
  }
  EXPECT_THAT(watched.faults(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace rhizome
