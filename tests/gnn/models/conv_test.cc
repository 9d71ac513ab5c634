#include "gnn/models/conv.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "gnn/models/dense_conv.h"
#include "gnn/models/lists_testing.h"
#include "gnn/models/model.h"
#include "gnn/models/registry.h"
#include "gnn/ops/torch_threads.h"
#include "testing/testing.h"

// Tests of graph layers against dense matrices in double precision (dense_conv.h), with gradients
// and for any number of threads, and of models: they are determined by their seed, survive a round
// trip through a file, and are refused if a file or shape is wrong.

namespace rhizome {
namespace {

using testing::DenseConv;
using testing::RandomLists;

struct ConvCase {
  const char* kind;
  std::map<std::string, std::string> options;
  std::int64_t in;
  std::int64_t out;
};

void PrintTo(const ConvCase& param, std::ostream* out) {
  *out << fmt::format("{} {} -> {}", param.kind, param.in, param.out);
  for (const auto& [name, value] : param.options) *out << " " << name << "=" << value;
}

/// A layer, its neighbour lists, and the weights of its output in the scalar loss.
struct RandomConv {
  std::shared_ptr<Conv> conv;
  Csr csr;
  std::vector<std::uint32_t> degrees;          // [sources], at least the listed neighbours
  std::vector<float> weights;                  // [edges], or empty
  std::vector<float> weighted_degrees;         // [sources]
  torch::Tensor x;                             // [sources, in]
  torch::Tensor first;                         // [targets, 3]
  std::map<std::string, torch::Tensor> named;  // all weights by name
  std::vector<torch::Tensor> leaves;           // x, then the weights that have a gradient
  std::vector<std::string> order;              // the names of the weights in `leaves`
  torch::Tensor weighting;                     // [targets, out]

  LayerGraph Graph() const {
    return MakeLayerGraph(
        conv->pieces().reduce, csr.view(),
        {.degrees = degrees, .weights = weights, .weighted_degrees = weighted_degrees}, x.size(0));
  }
};

RandomConv MakeRandomConv(const ConvCase& param, std::int64_t targets, std::int64_t sources,
                          std::uint64_t seed) {
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  RandomConv made;
  const ConvKind* const kind = *FindConvKind(param.kind);
  const auto options =
      ModelOptions::Resolve(param.kind, DescribeModel(*kind).options, param.options);
  EXPECT_OK(options);
  made.conv = *kind->make({.in = param.in, .out = param.out, .first = 3}, *options);
  made.x = torch::randn({sources, param.in}).set_requires_grad(true);
  made.first = torch::randn({targets, 3});
  made.leaves = {made.x};
  made.conv->VisitWeights([&](const WeightSpec& spec, torch::Tensor& weight) {
    weight = torch::randn(spec.shape);
    if (!spec.trained) weight = weight.abs() + 0.5;  // variances are positive
    weight.set_requires_grad(spec.trained);
    if (spec.trained) made.leaves.push_back(weight);
    if (spec.trained) made.order.push_back(spec.name);
    made.named[spec.name] = weight;
  });
  made.csr =
      RandomLists(static_cast<std::size_t>(targets), static_cast<std::size_t>(sources), random);
  made.degrees.resize(static_cast<std::size_t>(sources));
  for (std::uint32_t& degree : made.degrees) degree = static_cast<std::uint32_t>(random() % 20);
  made.weighting = torch::randn({targets, param.out});
  return made;
}

/// Gives random weights to the edges, some of them zero.
void AddWeights(std::uint64_t seed, RandomConv& made) {
  std::mt19937_64 random(seed);
  const auto draw = [&] { return static_cast<float>(random() % 16) / 4; };
  made.weights.resize(made.csr.neighbors.size());
  for (float& weight : made.weights) weight = draw();
  made.weighted_degrees.resize(made.degrees.size());
  for (float& sum : made.weighted_degrees) sum = 4 * draw();
}

class ConvTest : public ::testing::TestWithParam<ConvCase> {};

TEST_P(ConvTest, ValuesAndGradientsEqualTheDenseLayerInDouble) {
  const std::uint64_t seed = testing::TestSeed();
  RandomConv made = MakeRandomConv(GetParam(), 30, 50, seed);
  const std::uint64_t dropout_seed = 1;
  for (const bool weighted : {false, true}) {
    if (weighted && !made.conv->pieces().reduce.weighs()) break;
    if (weighted) AddWeights(seed, made);
    const RunMode mode = weighted ? RunMode{&dropout_seed} : RunMode{};
    const DenseConv dense(made.named, made.x, made.csr, made.degrees, made.weights,
                          made.weighted_degrees);
    const torch::Tensor expected =
        dense.Compute(GetParam().kind, GetParam().options, made.first, mode.training());
    const LayerGraph graph = made.Graph();
    const torch::Tensor got = made.conv->Forward({made.x}, graph, made.first, {}, mode);
    EXPECT_TRUE(torch::allclose(got.to(torch::kDouble), expected, 1e-4, 1e-4));
    const auto got_gradients = torch::autograd::grad({(got * made.weighting).sum()}, made.leaves);
    const auto expected_gradients = dense.Gradients((expected * made.weighting).sum(), made.order);
    ASSERT_EQ(got_gradients.size(), expected_gradients.size());
    for (std::size_t i = 0; i < got_gradients.size(); ++i) {
      EXPECT_TRUE(
          torch::allclose(got_gradients[i].to(torch::kDouble), expected_gradients[i], 1e-3, 1e-3))
          << "leaf " << i;
    }
  }
}

// Covers both orders of aggregation and multiplication, over more than one tile.
TEST_P(ConvTest, ActivationFollowsTheLayerAndThreadsDoNotChangeABit) {
  const std::uint64_t seed = testing::TestSeed();
  const RandomConv made = MakeRandomConv(GetParam(), 1100, 1500, seed);
  const Activation activation{.relu = true, .dropout = 0.5, .seed = seed};
  const LayerGraph graph = made.Graph();
  const auto gradients = [&](const torch::Tensor& out) {
    auto all = torch::autograd::grad({(out * made.weighting).sum()}, made.leaves);
    all.push_back(out);
    return all;
  };
  const auto forward = [&](const Activation& then) {
    return made.conv->Forward({made.x}, graph, made.first, then, {});
  };
  const auto wanted = gradients(Activate(forward({}), activation));
  std::vector<torch::Tensor> first;
  for (const std::uint32_t threads : {1, 2, 4}) {
    SetTorchThreads(threads);
    const auto got = gradients(forward(activation));
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
  EXPECT_TRUE(torch::equal(forward(activation), first.back().detach()));
}

// Wide inputs are multiplied before they are aggregated, narrow ones after.
INSTANTIATE_TEST_SUITE_P(
    Kinds, ConvTest,
    ::testing::Values(ConvCase{"sage", {}, 8, 20}, ConvCase{"sage", {}, 90, 4},
                      ConvCase{"sage", {{"aggregator", "gcn"}}, 8, 20},
                      ConvCase{"sage", {{"aggregator", "gcn"}}, 90, 4},
                      ConvCase{"sage", {{"aggregator", "max"}}, 8, 20},
                      ConvCase{"sage", {{"aggregator", "pool"}}, 8, 20},
                      ConvCase{"sage", {{"l2-normalize", "true"}}, 8, 20},
                      ConvCase{"sage", {{"aggregator", "pool"}, {"l2-normalize", "true"}}, 8, 20},
                      ConvCase{"gcn", {}, 8, 20}, ConvCase{"gcn", {}, 90, 4},
                      ConvCase{"gin", {}, 8, 20}, ConvCase{"gin", {{"eps", "0.3"}}, 20, 8},
                      ConvCase{"gat", {}, 8, 20}, ConvCase{"gat", {{"heads", "1"}}, 20, 8},
                      ConvCase{"gat", {{"no-self-loops", "true"}}, 8, 20},
                      ConvCase{"gatv2", {}, 8, 20},
                      ConvCase{"gatv2", {{"heads", "5"}, {"no-self-loops", "true"}}, 8, 20},
                      ConvCase{"commnet", {}, 8, 20},
                      ConvCase{"commnet", {{"skip", "true"}}, 8, 20}));

// Conv::Attended computes attention as separate steps, which store rows and gradients of all
// sources; the override computes it in a single pass that does not. The test has more than one tile
// of sources and of targets.
TEST(AttendedTest, AWholeLayerEqualsItsPieces) {
  const std::uint64_t seed = testing::TestSeed();
  for (const char* const kind : {"gat", "gatv2"}) {
    for (const char* const alone : {"false", "true"}) {
      const RandomConv made = MakeRandomConv(
          {kind, {{"no-self-loops", alone}, {"attention-dropout", "0.3"}}, 12, 20}, 600, 900, seed);
      const LayerGraph graph = made.Graph();
      const RunMode mode{&seed};
      const std::vector<torch::Tensor> leaves(made.leaves.begin(),
                                              made.leaves.end() - 1);  // no bias
      const auto gradients = [&](const torch::Tensor& out) {
        return torch::autograd::grad({(out * made.weighting).sum()}, leaves);
      };
      const torch::Tensor pieces = made.conv->Conv::Attended({made.x}, graph, mode);
      const torch::Tensor whole = made.conv->Attended({made.x}, graph, mode);
      EXPECT_TRUE(torch::equal(whole, pieces)) << kind;
      const auto wanted = gradients(pieces), got = gradients(whole);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(
            torch::allclose(got[i], wanted[i], 1e-4, 1e-4 * wanted[i].abs().max().item<double>()))
            << kind << ", leaf " << i;
      }
      // Rows that are read through an index give the same result; no gradient of the rows is
      // computed.
      std::vector<std::uint32_t> place(900);
      for (std::uint32_t i = 0; i < 900; ++i) place[i] = 899 - i;
      const LayerRows placed{made.x.detach().flip(0), place};
      const torch::Tensor out = made.conv->Attended(placed, graph, mode);
      EXPECT_TRUE(torch::equal(out, whole)) << kind;
      const auto weights =
          torch::autograd::grad({(out * made.weighting).sum()}, {leaves.begin() + 1, leaves.end()});
      for (std::size_t i = 0; i < weights.size(); ++i)
        EXPECT_TRUE(torch::equal(weights[i], got[i + 1])) << kind << ", weight " << i;
    }
  }
}

ModelShape SmallShape() {
  return {.spec = {.kind = "sage", .layers = 2, .hidden = 6}, .inputs = 5, .classes = 3};
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
