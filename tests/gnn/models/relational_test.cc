#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "gnn/models/conv.h"
#include "gnn/models/lists_testing.h"
#include "gnn/models/model.h"
#include "gnn/models/registry.h"
#include "gnn/ops/torch_threads.h"
#include "testing/testing.h"

// Tests of R-GCN against a dense layer in double precision: values and gradients for full matrices,
// bases and blocks, with edge weights and rows that are read in place; the same bits for any number
// of threads; and the size of the largest tensor of a step.

namespace rhizome {
namespace {

using testing::RandomLists;
using testing::SameBits;

constexpr std::int64_t kRelations = 5;

struct RelationCase {
  const char* name;
  std::map<std::string, std::string> options;
};
void PrintTo(const RelationCase& param, std::ostream* out) { *out << param.name; }

/// A random layer of 12 -> 8 columns with grouped lists.
struct RandomRelations {
  std::shared_ptr<Conv> conv;
  Csr csr;
  std::vector<std::uint16_t> relations;  // [edges]
  std::vector<float> weights;            // [edges], or empty
  torch::Tensor x;
  std::map<std::string, torch::Tensor> named;
  std::vector<torch::Tensor> leaves;  // x, then the weights
  torch::Tensor weighting;            // of the outputs, in the loss

  LayerGraph Graph() const {
    const auto grouped =
        std::make_shared<const GroupedCsr>(GroupByRelation(csr.view(), relations, weights));
    return MakeGroupedGraph(conv->pieces().reduce, grouped, csr.offsets.size() - 1, x.size(0));
  }
};

RandomRelations MakeRandom(const RelationCase& param, std::size_t targets, std::size_t sources,
                           std::uint64_t seed, bool weighted) {
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  RandomRelations made;
  const ConvKind* const kind = *FindConvKind("rgcn");
  const auto options = ModelOptions::Resolve("rgcn", DescribeModel(*kind).options, param.options);
  EXPECT_OK(options);
  made.conv = *kind->make({.in = 12, .out = 8, .relations = kRelations}, *options);
  made.x = torch::randn({static_cast<std::int64_t>(sources), 12}).set_requires_grad(true);
  made.leaves = {made.x};
  made.conv->VisitWeights([&](const WeightSpec& spec, torch::Tensor& weight) {
    weight = torch::randn(spec.shape).set_requires_grad(true);
    made.leaves.push_back(weight);
    made.named[spec.name] = weight;
  });
  made.csr = RandomLists(targets, sources, random);
  for (std::size_t e = 0; e < made.csr.neighbors.size(); ++e) {
    made.relations.push_back(static_cast<std::uint16_t>(random() % kRelations));
    if (weighted) made.weights.push_back(static_cast<float>(1 + random() % 7) / 4);
  }
  made.weighting = torch::randn({static_cast<std::int64_t>(targets), 8});
  return made;
}

/// Returns the matrix of a relation, [out, in], from the layer's weights.
torch::Tensor MatrixOf(const std::map<std::string, torch::Tensor>& named, std::int64_t relation) {
  if (const auto bases = named.find("bases.weight"); bases != named.end()) {
    const torch::Tensor factors = named.at("bases.coefficients")[relation];
    return (bases->second * factors.view({-1, 1, 1})).sum(0);
  }
  const torch::Tensor blocks = named.at("relation.weight")[relation];
  std::vector<torch::Tensor> diagonal;
  for (std::int64_t b = 0; b < blocks.size(0); ++b) diagonal.push_back(blocks[b]);
  return torch::block_diag(diagonal);
}

/// Computes the layer edge by edge in double precision.
torch::Tensor Dense(const RandomRelations& made, const torch::Tensor& x,
                    const std::map<std::string, torch::Tensor>& named) {
  const auto targets = static_cast<std::int64_t>(made.csr.offsets.size()) - 1;
  torch::Tensor out =
      torch::mm(x.narrow(0, 0, targets), named.at("self.weight").t()) + named.at("bias");
  for (std::int64_t r = 0; r < kRelations; ++r) {
    torch::Tensor mean = torch::zeros({targets, x.size(0)}, torch::kDouble);
    for (std::int64_t t = 0; t < targets; ++t) {
      for (std::uint32_t e = made.csr.offsets[static_cast<std::size_t>(t)];
           e < made.csr.offsets[static_cast<std::size_t>(t) + 1]; ++e) {
        if (made.relations[e] == r)
          mean[t][made.csr.neighbors[e]] += made.weights.empty() ? 1 : made.weights[e];
      }
    }
    mean = mean / mean.sum(1, true).clamp_min(1e-9);
    out = out + torch::mm(torch::mm(mean, x), MatrixOf(named, r).t());
  }
  return out;
}

class RelationalTest : public ::testing::TestWithParam<RelationCase> {};

TEST_P(RelationalTest, ValuesAndGradientsEqualTheDenseLayerInDouble) {
  const std::uint64_t seed = testing::TestSeed();
  for (const bool weighted : {false, true}) {
    const RandomRelations made = MakeRandom(GetParam(), 30, 50, seed, weighted);
    const auto copy = [](const torch::Tensor& tensor) {
      return tensor.detach().to(torch::kDouble).clone().set_requires_grad(true);
    };
    const torch::Tensor x = copy(made.x);
    std::vector<torch::Tensor> leaves = {x};
    std::map<std::string, torch::Tensor> named;
    for (const auto& [name, tensor] : made.named) named[name] = copy(tensor);
    made.conv->VisitWeights(
        [&](const WeightSpec& spec, torch::Tensor&) { leaves.push_back(named.at(spec.name)); });
    const torch::Tensor expected = Dense(made, x, named);
    const LayerGraph graph = made.Graph();
    const torch::Tensor got = made.conv->Forward({made.x}, graph, {}, {}, {});
    EXPECT_TRUE(torch::allclose(got.to(torch::kDouble), expected, 1e-4, 1e-4));
    const auto wanted = torch::autograd::grad({(expected * made.weighting).sum()}, leaves);
    const auto gradients = torch::autograd::grad({(got * made.weighting).sum()}, made.leaves);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(torch::allclose(gradients[i].to(torch::kDouble), wanted[i], 1e-3, 1e-3))
          << "leaf " << i;
  }
}

// Covers several tiles of targets.
TEST_P(RelationalTest, ActivationFollowsTheLayerAndThreadsDoNotChangeABit) {
  const std::uint64_t seed = testing::TestSeed();
  const RandomRelations made = MakeRandom(GetParam(), 1100, 1500, seed, false);
  const Activation activation{.relu = true, .dropout = 0.5, .seed = seed};
  const LayerGraph graph = made.Graph();
  const auto forward = [&](const LayerRows& x, const Activation& then) {
    return made.conv->Forward(x, graph, {}, then, {});
  };
  const auto gradients = [&](const torch::Tensor& out) {
    auto all = torch::autograd::grad({(out * made.weighting).sum()}, made.leaves);
    all.push_back(out);
    return all;
  };
  const auto wanted = gradients(Activate(forward({made.x}, {}), activation));
  std::vector<torch::Tensor> first;
  for (const std::uint32_t threads : {1, 2, 4}) {
    SetTorchThreads(threads);
    const auto got = gradients(forward({made.x}, activation));
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(torch::allclose(got[i], wanted[i], 1e-3, 1e-3)) << "tensor " << i;
      if (!first.empty()) {
        EXPECT_TRUE(SameBits(got[i], first[i])) << threads << " threads";
      }
    }
    if (first.empty()) first = got;
  }
  SetTorchThreads(1);
  // Rows that are read through an index.
  std::vector<std::uint32_t> place(1500);
  for (std::uint32_t i = 0; i < 1500; ++i) place[i] = 1499 - i;
  const LayerRows placed{made.x.detach().flip(0), place};
  const torch::Tensor out = forward(placed, activation);
  EXPECT_TRUE(SameBits(out, first.back()));
  const auto weights = torch::autograd::grad({(out * made.weighting).sum()},
                                             {made.leaves.begin() + 1, made.leaves.end()});
  for (std::size_t i = 0; i < weights.size(); ++i)
    EXPECT_TRUE(SameBits(weights[i], first[i + 1])) << "weight " << i;
}

// The pieces for tiles of targets, which layerwise inference uses.
TEST_P(RelationalTest, ATileOfTargetsEqualsTheWholeLayer) {
  const std::uint64_t seed = testing::TestSeed();
  const RandomRelations made = MakeRandom(GetParam(), 256, 400, seed, false);
  const LayerGraph graph = made.Graph();
  const torch::NoGradGuard guard;
  made.conv->Freeze();
  const torch::Tensor whole = made.conv->Forward({made.x.detach()}, graph, {}, {}, {});
  const torch::Tensor reduced = AggregateSum(made.x.detach(), graph.lists, graph.factors());
  const torch::Tensor tile = made.conv->Update({.own = {made.x.detach().narrow(0, 0, 256)},
                                                .reduced = reduced,
                                                .first = {},
                                                .both = {},
                                                .groups = graph.groups},
                                               {});
  EXPECT_TRUE(torch::allclose(tile, whole, 1e-5, 1e-5));
}

/// Records the largest allocation of the calling thread.
class LargestTensor : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                         c10::Device) override {
    largest = std::max(largest, bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t largest = 0;
};

TEST_P(RelationalTest, NoTensorOfAStepIsLargerThanThreeRowsPerGroup) {
  const std::uint64_t seed = testing::TestSeed();
  const RandomRelations made = MakeRandom(GetParam(), 3000, 4000, seed, false);
  const LayerGraph graph = made.Graph();
  const auto recorder = std::make_shared<LargestTensor>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, recorder);
    const torch::Tensor out = made.conv->Forward({made.x}, graph, {}, {.relu = true}, {});
    torch::autograd::grad({(out * made.weighting).sum()}, made.leaves);
  }
  const auto most = std::max<std::int64_t>(static_cast<std::int64_t>(graph.groups.groups()), 4000);
  EXPECT_GT(recorder->largest, 0);
  EXPECT_LE(recorder->largest, most * 3 * 12 * 4);
}

INSTANTIATE_TEST_SUITE_P(Forms, RelationalTest,
                         ::testing::Values(RelationCase{"Full", {}},
                                           RelationCase{"Bases", {{"bases", "3"}}},
                                           RelationCase{"OneBasis", {{"bases", "1"}}},
                                           RelationCase{"Blocks", {{"blocks", "4"}}}),
                         ::testing::PrintToStringParamName());

TEST(RelationalShapeTest, ManyRelationsShareBasesByDefault) {
  const auto count = [](std::size_t relations, const std::string& bases) {
    ModelShape shape{.spec = {.kind = "rgcn", .layers = 1, .hidden = 4}, .inputs = 4, .classes = 2};
    if (!bases.empty()) shape.spec.options["bases"] = bases;
    for (std::size_t r = 0; r < relations; ++r) shape.relations.push_back(fmt::format("r{}", r));
    return *CountWeights(shape);
  };
  const std::uint64_t others = 4 * 4 + 4 + 4 * 2 + 2;  // own rows, bias, head
  EXPECT_EQ(count(32, ""), others + 32 * 16);
  EXPECT_EQ(count(33, ""), others + 16 * 16 + 33 * 16);
  EXPECT_EQ(count(33, "0"), others + 33 * 16);
}

TEST(RelationalShapeTest, BlocksMustDivideTheColumnsAndExcludeBases) {
  ModelShape shape{.spec = {.kind = "rgcn", .layers = 1, .hidden = 6}, .inputs = 4, .classes = 2};
  shape.spec.options = {{"blocks", "4"}};
  EXPECT_EQ(Model::Create(shape, 1).error().code(), StatusCode::kInvalidArgument);
  shape.spec.options = {{"blocks", "2"}, {"bases", "2"}};
  EXPECT_EQ(Model::Create(shape, 1).error().code(), StatusCode::kInvalidArgument);
}

TEST(RelationalShapeTest, AFileKeepsTheRelationsAndAStoreMayHaveFewerInAnyOrder) {
  const ModelShape shape{.spec = {.kind = "rgcn", .layers = 1, .hidden = 4},
                         .inputs = 4,
                         .classes = 2,
                         .relations = {"cites", "writes", "has topic"},
                         .by_side = true};
  const Result<Model> made = Model::Create(shape, 1);
  ASSERT_OK(made);
  Result<Model> model = Model::FromFile(made->ToFile());
  ASSERT_OK(model);
  EXPECT_EQ(model->shape().relations, shape.relations);
  EXPECT_TRUE(model->shape().by_side);
  ASSERT_OK(model->FitRelations({"has topic", "cites"}, true));
  EXPECT_EQ(model->relations(), (std::vector<TypeId>{2, 0, 5, 3}));
  const Status unknown = model->FitRelations({"cites", "likes"}, true);
  EXPECT_EQ(unknown.code(), StatusCode::kUnsupported);
  EXPECT_NE(unknown.message().find("likes"), std::string::npos);
  // Types that no hop follows need no weights.
  ASSERT_OK(model->FitRelations({"likes", "cites"}, true, {{0, 5}, {0, 0}}));
  EXPECT_EQ(model->relations()[1], 0);
  EXPECT_EQ(model->relations()[3], 3);
  EXPECT_FALSE(model->FitRelations({"likes", "cites"}, true, {{0, 5}, {1, 0}}).ok());
  ModelShape one_side = shape;
  one_side.by_side = false;
  Result<Model> narrow = Model::Create(one_side, 1);
  ASSERT_OK(narrow);
  EXPECT_EQ(narrow->FitRelations({"cites"}, true).code(), StatusCode::kUnsupported);
  ASSERT_OK(narrow->FitRelations({"cites"}, false));
}

TEST(RelationalShapeTest, RelationsHaveNumbersOf16Bits) {
  ModelShape shape{.spec = {.kind = "rgcn", .hidden = 1, .options = {{"bases", "1"}}},
                   .inputs = 1,
                   .classes = 1,
                   .by_side = true};
  for (std::uint32_t r = 0; r < 32767; ++r) shape.relations.push_back(std::to_string(r));
  const Result<Model> most = Model::Create(shape, 1);
  ASSERT_OK(most);
  Model model = *most;
  ASSERT_OK(model.FitRelations(shape.relations, true));
  EXPECT_EQ(model.relations().back(), 65533);
  shape.relations.push_back("one more");
  const auto refused = Model::Create(shape, 1);
  EXPECT_STATUS(refused, kInvalidArgument);
  EXPECT_NE(refused.error().message().find("32768 edge types in both directions"),
            std::string::npos);
  shape.by_side = false;
  EXPECT_OK(Model::Create(shape, 1));
}

}  // namespace
}  // namespace rhizome
