#include "rhizome/gnn/conv_layer.h"

#include <cmath>
#include <random>

#include "gnn/models/lists_testing.h"
#include "rhizome/cache/minibatch.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/torch_threads.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::RandomLists;

/// Returns the lists as a dense matrix of counts [targets, sources].
torch::Tensor Dense(const Csr& csr, std::size_t sources) {
  const auto targets = static_cast<std::int64_t>(csr.offsets.size()) - 1;
  torch::Tensor matrix = torch::zeros({targets, static_cast<std::int64_t>(sources)});
  for (std::int64_t t = 0; t < targets; ++t) {
    for (std::uint32_t e = csr.offsets[t]; e < csr.offsets[t + 1]; ++e) {
      matrix[t][static_cast<std::int64_t>(csr.neighbors[e])] += 1;
    }
  }
  return matrix;
}

/// Computes a layer with dense arithmetic: Forward must give the same values and gradients.
torch::Tensor NaiveForward(const ConvLayer& layer, const torch::Tensor& x, const Csr& csr,
                           const std::vector<std::uint32_t>& degrees) {
  const std::int64_t sources = x.size(0);
  const auto targets = static_cast<std::int64_t>(csr.offsets.size()) - 1;
  const torch::Tensor counts = Dense(csr, static_cast<std::size_t>(sources));
  const torch::Tensor listed = counts.sum(1, true);
  const torch::Tensor self = x.narrow(0, 0, targets);
  const torch::Tensor mean = torch::mm(counts, x) / listed.clamp_min(1);
  if (layer.kind == ModelKind::kSage) {
    return torch::mm(self, layer.self_weight.t()) + torch::mm(mean, layer.neighbor_weight.t()) +
           layer.bias;
  }
  std::vector<float> values(degrees.begin(), degrees.end());
  const torch::Tensor degree = torch::tensor(values).unsqueeze(1);
  const torch::Tensor c = 1 / torch::sqrt(degree + 1);
  const torch::Tensor own = c.narrow(0, 0, targets);
  const torch::Tensor estimate =
      torch::mm(counts, x * c) / listed.clamp_min(1) * degree.narrow(0, 0, targets);
  return torch::mm(own * estimate + own * own * self, layer.neighbor_weight.t()) + layer.bias;
}

struct LayerCase {
  ModelKind kind;
  std::int64_t in;
  std::int64_t out;
};

/// A layer, the lists that it walks, and a weighting of its output.
struct RandomLayer {
  ConvLayer layer;
  Csr csr;
  std::vector<std::uint32_t> degrees;  // [sources]
  torch::Tensor x;                     // [sources, in]
  std::vector<torch::Tensor> leaves;   // all tensors that have a gradient
  torch::Tensor weighting;             // [targets, out]
};

RandomLayer MakeRandomLayer(const LayerCase& param, std::int64_t targets, std::int64_t sources,
                            std::uint64_t seed) {
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  RandomLayer made;
  made.layer.kind = param.kind;
  made.layer.neighbor_weight = torch::randn({param.out, param.in}).set_requires_grad(true);
  made.layer.bias = torch::randn({param.out}).set_requires_grad(true);
  made.leaves = {made.layer.neighbor_weight, made.layer.bias};
  if (param.kind == ModelKind::kSage) {
    made.layer.self_weight = torch::randn({param.out, param.in}).set_requires_grad(true);
    made.leaves.push_back(made.layer.self_weight);
  }
  made.csr =
      RandomLists(static_cast<std::size_t>(targets), static_cast<std::size_t>(sources), random);
  made.degrees.resize(static_cast<std::size_t>(sources));
  for (std::uint32_t& degree : made.degrees) degree = static_cast<std::uint32_t>(random() % 20);
  made.x = torch::randn({sources, param.in}).set_requires_grad(true);
  made.leaves.push_back(made.x);
  made.weighting = torch::randn({targets, param.out});
  return made;
}

class ConvLayerTest : public ::testing::TestWithParam<LayerCase> {};

TEST_P(ConvLayerTest, ValuesAndGradientsEqualTheDenseLayer) {
  const LayerCase& param = GetParam();
  const std::uint64_t seed = testing::TestSeed();
  const auto [layer, csr, degrees, x, leaves, weighting] = MakeRandomLayer(param, 30, 50, seed);

  const LayerGraph graph = MakeLayerGraph(param.kind, csr.view(), degrees, 50);
  const torch::Tensor got = layer.Forward({x}, graph, {});
  const torch::Tensor expected = NaiveForward(layer, x, csr, degrees);
  EXPECT_TRUE(torch::allclose(got, expected, 1e-4, 1e-4));
  const auto got_gradients = torch::autograd::grad({(got * weighting).sum()}, leaves);
  const auto expected_gradients = torch::autograd::grad({(expected * weighting).sum()}, leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_TRUE(torch::allclose(got_gradients[i], expected_gradients[i], 1e-3, 1e-3))
        << "leaf " << i;
  }
}

// Both orders of aggregation and multiplication are run, over more than one tile.
TEST_P(ConvLayerTest, ActivationFollowsTheLayerAndThreadsDoNotChangeABit) {
  const LayerCase& param = GetParam();
  const std::uint64_t seed = testing::TestSeed();
  const auto [layer, csr, degrees, x, leaves, weighting] = MakeRandomLayer(param, 1100, 1500, seed);
  const Activation activation{.relu = true, .dropout = 0.5, .seed = seed};
  const LayerGraph graph = MakeLayerGraph(param.kind, csr.view(), degrees, 1500);
  const torch::Tensor expected = Activate(layer.Forward({x}, graph, {}), activation);
  auto wanted = torch::autograd::grad({(expected * weighting).sum()}, leaves);
  wanted.push_back(expected);
  std::vector<torch::Tensor> first;
  for (const std::uint32_t threads : {1, 2, 4}) {
    SetTorchThreads(threads);
    const torch::Tensor out = layer.Forward({x}, graph, activation);
    auto got = torch::autograd::grad({(out * weighting).sum()}, leaves);
    got.push_back(out);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(torch::allclose(got[i], wanted[i], 1e-3, 1e-3)) << "tensor " << i;
      if (!first.empty()) {
        EXPECT_TRUE(torch::equal(got[i], first[i])) << threads << " threads";
      }
    }
    if (first.empty()) first = got;
  }
  SetTorchThreads(1);
  const c10::InferenceMode guard;
  EXPECT_TRUE(torch::equal(layer.Forward({x}, graph, activation), first.back().detach()));
}

// Wide inputs are multiplied before they are aggregated, narrow ones after.
INSTANTIATE_TEST_SUITE_P(Kinds, ConvLayerTest,
                         ::testing::Values(LayerCase{ModelKind::kSage, 8, 20},
                                           LayerCase{ModelKind::kSage, 90, 4},
                                           LayerCase{ModelKind::kGcn, 8, 20},
                                           LayerCase{ModelKind::kGcn, 90, 4}));

ModelShape SmallShape() {
  return {.spec = {.kind = ModelKind::kSage, .layers = 2, .hidden = 6}, .inputs = 5, .classes = 3};
}

TEST(ModelTest, TheSeedAloneDecidesTheWeights) {
  const Result<Model> a = Model::Create(SmallShape(), 1);
  const Result<Model> b = Model::Create(SmallShape(), 1);
  const Result<Model> c = Model::Create(SmallShape(), 2);
  ASSERT_OK(a);
  ASSERT_OK(b);
  ASSERT_OK(c);
  EXPECT_EQ(EncodeSafetensors(a->ToFile()), EncodeSafetensors(b->ToFile()));
  EXPECT_NE(EncodeSafetensors(a->ToFile()), EncodeSafetensors(c->ToFile()));
}

TEST(ModelTest, AFileGivesBackTheModel) {
  const Result<Model> model = Model::Create(SmallShape(), 1);
  ASSERT_OK(model);
  const Result<Model> again = Model::FromFile(model->ToFile());
  ASSERT_OK(again);
  EXPECT_EQ(EncodeSafetensors(again->ToFile()), EncodeSafetensors(model->ToFile()));
}

TEST(ModelTest, FilesThatAreNoWholeModelAreRefused) {
  const TensorFile good = Model::Create(SmallShape(), 1)->ToFile();
  TensorFile file = good;
  file.metadata.clear();
  EXPECT_STATUS(Model::FromFile(file), kCorruption);
  file = good;
  file.tensors.erase("head.bias");
  EXPECT_STATUS(Model::FromFile(file), kCorruption);
  file = good;
  file.tensors["more"] = {.shape = {1}, .values = {0}};
  EXPECT_STATUS(Model::FromFile(file), kCorruption);
  file = good;
  file.tensors["head.bias"] = {.shape = {2}, .values = {0, 0}};
  EXPECT_STATUS(Model::FromFile(file), kCorruption);
}

TEST(ModelTest, ImpossibleShapesAreRefused) {
  ModelShape shape = SmallShape();
  shape.spec.layers = 0;
  EXPECT_STATUS(Model::Create(shape, 1), kInvalidArgument);
  shape = SmallShape();
  shape.spec.hidden = 0;
  EXPECT_STATUS(Model::Create(shape, 1), kInvalidArgument);
  shape = SmallShape();
  shape.spec.dropout = 1;
  EXPECT_STATUS(Model::Create(shape, 1), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
