#include <cmath>
#include <random>

#include "cache/kernels/simd.h"
#include "gnn/models/conv.h"
#include "gnn/models/lists_testing.h"
#include "gnn/models/registry.h"
#include "gnn/ops/torch_threads.h"
#include "gnn/ops/typed_attention.h"
#include "gnn/ops/typed_graph.h"
#include "testing/testing.h"

// Tests of the HGT layer on random typed graphs: results and gradients against its equations edge
// by edge in double precision, in every SIMD path and for any number of threads; large scores; rows
// of half precision; graphs without edges; products by class.

namespace rhizome {
namespace {

using testing::EdgesOf;
using testing::RandomLists;
using testing::SameBits;

constexpr std::int64_t kHgtVertexTypes = 3;
constexpr std::int64_t kHgtRelations = 4;
constexpr std::int64_t kHgtTargets = 40;
constexpr std::int64_t kHgtSources = 70;

/// Restores the SIMD path and the number of threads at the end of each test.
class HgtTest : public ::testing::Test {
 protected:
  void TearDown() override {
    SetSimdPath(before_);
    SetTorchThreads(1);
  }
  const SimdPath before_ = CurrentSimdPath();
};

/// A layer with random weights over a random typed graph.
struct HgtCase {
  std::int64_t heads = 1;
  Csr csr;
  std::vector<TypeId> relations;     // [edges]
  std::vector<TypeId> vertex_types;  // [sources]
  std::shared_ptr<Conv> conv;
  torch::Tensor x;
  std::map<std::string, torch::Tensor> weights;
  torch::Tensor weighting;  // [targets, out]

  std::vector<torch::Tensor> Leaves() const {
    std::vector<torch::Tensor> leaves = {x};
    for (const auto& [name, weight] : weights) leaves.push_back(weight);
    return leaves;
  }

  LayerGraph Graph() const {
    LayerGraph graph =
        MakeGroupedGraph(conv->pieces().reduce,
                         std::make_shared<const GroupedCsr>(GroupByRelation(csr.view(), relations)),
                         csr.view().targets(), kHgtSources);
    graph.typed = MakeTypedGraph(graph.groups, graph.lists.csr(), kHgtSources, vertex_types,
                                 {.vertex_types = kHgtVertexTypes, .relations = kHgtRelations});
    return graph;
  }
};

HgtCase MakeHgtCase(std::int64_t in, std::int64_t out, std::int64_t heads, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  torch::manual_seed(seed);
  HgtCase c;
  c.heads = heads;
  c.csr = RandomLists(kHgtTargets, kHgtSources, random);
  // The last type and the last relation are rare; relation 0 has no edges.
  const auto draw = [&](std::int64_t classes) {
    return static_cast<TypeId>(
        std::min<std::uint64_t>(random() % 100, static_cast<std::uint64_t>(classes) - 1));
  };
  for (std::size_t e = 0; e < c.csr.neighbors.size(); ++e)
    c.relations.push_back(static_cast<TypeId>(1 + random() % (kHgtRelations - 1)));
  for (std::int64_t j = 0; j < kHgtSources; ++j)
    c.vertex_types.push_back(random() % 3 == 0 ? TypeId{0} : draw(kHgtVertexTypes));
  const ConvKind* const kind = *FindConvKind("hgt");
  const auto options = ModelOptions::Resolve("hgt", DescribeModel(*kind).options,
                                             {{"heads", std::to_string(heads)}});
  EXPECT_OK(options);
  c.conv = *kind->make(
      {.in = in, .out = out, .relations = kHgtRelations, .vertex_types = kHgtVertexTypes},
      *options);
  c.conv->VisitWeights([&](const WeightSpec& spec, torch::Tensor& weight) {
    weight = torch::randn(spec.shape) / std::sqrt(static_cast<double>(spec.shape.back()));
    if (spec.fill != WeightSpec::Fill::kGlorot) weight = torch::randn(spec.shape);
    weight.set_requires_grad(true);
    c.weights[spec.name] = weight;
  });
  c.x = torch::randn({kHgtSources, in}).set_requires_grad(true);
  c.weighting = torch::randn({kHgtTargets, out});
  return c;
}

/// Returns the maximum of the scores [edges, heads] over the edges of each target.
torch::Tensor LargestOfTargets(const Csr& csr, const torch::Tensor& scores) {
  torch::Tensor largest = torch::zeros({kHgtTargets, scores.size(1)}, torch::kFloat64);
  for (std::int64_t t = 0; t < kHgtTargets; ++t) {
    const std::int64_t begin = csr.offsets[static_cast<std::size_t>(t)];
    const std::int64_t end = csr.offsets[static_cast<std::size_t>(t) + 1];
    if (begin < end) largest[t].copy_(scores.narrow(0, begin, end - begin).amax(0));
  }
  return largest;
}

/// The layer in double precision, edge by edge, as in Hu et al. and PyG's HGTConv: the softmax is
/// over all edges of a target. `w`: weights by name.
torch::Tensor EdgeByEdge(const HgtCase& c, const torch::Tensor& x,
                         std::map<std::string, torch::Tensor>& w) {
  const std::int64_t out = c.weighting.size(1), d = out / c.heads;
  const auto numbers = [](const std::vector<TypeId>& types) {
    return torch::tensor(std::vector<std::int64_t>(types.begin(), types.end()), torch::kInt64);
  };
  const torch::Tensor type = numbers(c.vertex_types), relation = numbers(c.relations);
  const torch::Tensor own_type = type.narrow(0, 0, kHgtTargets);
  const auto product = [](const torch::Tensor& rows, const torch::Tensor& weight,
                          const torch::Tensor& bias, const torch::Tensor& of) {
    return torch::einsum("ni,noi->no", {rows, weight.index_select(0, of)}) +
           bias.index_select(0, of);
  };
  const torch::Tensor own = x.narrow(0, 0, kHgtTargets);
  const torch::Tensor kv = product(x, w["key_value.weight"], w["key_value.bias"], type);
  const torch::Tensor q = product(own, w["query.weight"], w["query.bias"], own_type);
  const auto edges = EdgesOf(c.csr);
  const auto of_edges = [&](const torch::Tensor& rows, const torch::Tensor& at) {
    return rows.index_select(0, at).reshape({-1, c.heads, d});
  };
  const torch::Tensor key =
      torch::einsum("ehi,ehio->eho", {of_edges(kv.narrow(1, 0, out), edges.from),
                                      w["relation.attention"].index_select(0, relation)});
  const torch::Tensor message =
      torch::einsum("ehi,ehoi->eho", {of_edges(kv.narrow(1, out, out), edges.from),
                                      w["relation.message"].index_select(0, relation)});
  const torch::Tensor scores = (key * of_edges(q, edges.to)).sum(2) *
                               w["relation.prior"].index_select(0, relation) /
                               std::sqrt(static_cast<double>(d));
  const torch::Tensor largest = LargestOfTargets(c.csr, scores.detach());
  const torch::Tensor powers = torch::exp(scores - largest.index_select(0, edges.to));
  const torch::Tensor sums =
      torch::zeros({kHgtTargets, c.heads}, torch::kFloat64).index_add(0, edges.to, powers);
  const torch::Tensor weights = powers / sums.index_select(0, edges.to);
  const torch::Tensor summed = torch::zeros({kHgtTargets, c.heads, d}, torch::kFloat64)
                                   .index_add(0, edges.to, message * weights.unsqueeze(2))
                                   .reshape({kHgtTargets, out});
  const torch::Tensor made =
      product(torch::gelu(summed), w["output.weight"], w["output.bias"], own_type);
  if (w.count("skip") == 0) return made;
  const torch::Tensor gate = torch::sigmoid(w["skip"].index_select(0, own_type)).unsqueeze(1);
  return gate * made + (1 - gate) * own;
}

/// Returns the gradients of the leaves, then the output.
std::vector<torch::Tensor> RunHgt(const HgtCase& c) {
  const LayerGraph graph = c.Graph();
  const torch::Tensor out = c.conv->Forward({c.x}, graph, {}, {}, {});
  std::vector<torch::Tensor> all = torch::autograd::grad({(out * c.weighting).sum()}, c.Leaves());
  all.push_back(out.detach());
  return all;
}

void ExpectHgtAsInDouble(const HgtCase& c, double error) {
  std::vector<torch::Tensor> leaves;
  std::map<std::string, torch::Tensor> weights;
  const auto add = [&](const torch::Tensor& leaf) {
    leaves.push_back(leaf.detach().to(torch::kFloat64).set_requires_grad(true));
    return leaves.back();
  };
  const torch::Tensor x = add(c.x);
  for (const auto& [name, weight] : c.weights) weights[name] = add(weight);
  const torch::Tensor expected = EdgeByEdge(c, x, weights);
  std::vector<torch::Tensor> wanted =
      torch::autograd::grad({(expected * c.weighting).sum()}, leaves);
  wanted.push_back(expected.detach());
  std::vector<std::string> names = {"x"};
  for (const auto& [name, weight] : weights) names.push_back(name);
  names.push_back("output");
  std::vector<torch::Tensor> first;
  for (const SimdPath path : AvailableSimdPaths()) {
    SetSimdPath(path);
    const std::vector<torch::Tensor> got = RunHgt(c);
    if (first.empty()) first = got;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(torch::allclose(got[i].to(torch::kFloat64), wanted[i], 1e-3, error))
          << names[i] << ", off by " << (got[i] - wanted[i]).abs().max().item<double>();
      EXPECT_TRUE(SameBits(got[i], first[i])) << SimdPathName(path) << ", " << names[i];
    }
  }
}

TEST_F(HgtTest, ResultsAndGradientsEqualTheEquationsEdgeByEdge) {
  const std::uint64_t seed = testing::TestSeed();
  ExpectHgtAsInDouble(MakeHgtCase(12, 12, 3, seed), 1e-3);
  ExpectHgtAsInDouble(MakeHgtCase(20, 16, 2, seed), 1e-3);  // no gate
  ExpectHgtAsInDouble(MakeHgtCase(64, 64, 1, seed), 1e-3);
}

TEST_F(HgtTest, WideHeadsAreComputedInRanges) {
  const std::uint64_t seed = testing::TestSeed();
  ASSERT_EQ(ColumnsTogether(5, 32), 64);  // two, two and one head
  ExpectHgtAsInDouble(MakeHgtCase(160, 160, 5, seed), 1e-3);
  ASSERT_EQ(ColumnsTogether(2, 80), 80);
  ExpectHgtAsInDouble(MakeHgtCase(20, 160, 2, seed), 1e-3);
}

TEST_F(HgtTest, LargeScoresOverflowNowhere) {
  HgtCase c = MakeHgtCase(12, 12, 3, testing::TestSeed());
  c.weights["relation.prior"].detach().fill_(60);
  const std::vector<torch::Tensor> got = RunHgt(c);
  for (const torch::Tensor& tensor : got) EXPECT_TRUE(torch::isfinite(tensor).all().item<bool>());
  std::map<std::string, torch::Tensor> weights;
  for (const auto& [name, weight] : c.weights) weights[name] = weight.detach().to(torch::kFloat64);
  const torch::Tensor expected = EdgeByEdge(c, c.x.detach().to(torch::kFloat64), weights);
  EXPECT_TRUE(torch::allclose(got.back().to(torch::kFloat64), expected, 1e-2, 1e-2));
}

TEST_F(HgtTest, ThreadsDoNotChangeABit) {
  const HgtCase c = MakeHgtCase(96, 96, 3, testing::TestSeed());
  std::vector<torch::Tensor> first;
  for (const std::uint32_t threads : {1, 2, 4}) {
    SetTorchThreads(threads);
    const std::vector<torch::Tensor> got = RunHgt(c);
    if (first.empty()) first = got;
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(SameBits(got[i], first[i])) << i;
  }
}

TEST_F(HgtTest, RowsOfACacheAreReadInPlaceAndInHalfPrecision) {
  const HgtCase c = MakeHgtCase(16, 8, 2, testing::TestSeed());
  std::mt19937_64 random(testing::TestSeed());
  std::vector<std::uint32_t> place(kHgtSources);
  for (std::uint32_t& row : place) row = static_cast<std::uint32_t>(random() % 100);
  const std::vector<std::int64_t> at(place.begin(), place.end());
  for (const torch::Dtype dtype : {torch::kFloat32, torch::kHalf}) {
    const torch::Tensor table = torch::randn({100, 16}).to(dtype);
    const LayerGraph graph = c.Graph();
    const torch::Tensor got = c.conv->Forward({table, place}, graph, {}, {}, {});
    const torch::Tensor dense = table.to(torch::kFloat32).index_select(0, torch::tensor(at));
    const torch::Tensor expected = c.conv->Forward({dense}, graph, {}, {}, {});
    EXPECT_TRUE(SameBits(got, expected));
    std::vector<torch::Tensor> weights = c.Leaves();
    weights.erase(weights.begin());
    const auto first = torch::autograd::grad({(got * c.weighting).sum()}, weights);
    const auto second = torch::autograd::grad({(expected * c.weighting).sum()}, weights);
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(SameBits(first[i], second[i])) << i;
  }
}

TEST_F(HgtTest, AGraphWithoutEdgesHasTheOutputsBiasAndTheGate) {
  HgtCase c = MakeHgtCase(12, 12, 3, testing::TestSeed());
  c.csr = Csr{.offsets = std::vector<std::uint32_t>(kHgtTargets + 1, 0), .neighbors = {}};
  c.relations.clear();
  ExpectHgtAsInDouble(c, 1e-4);
}

TEST_F(HgtTest, RowsAreSortedByClass) {
  const std::vector<std::uint16_t> of = {2, 0, 2, 0, 0};
  const RowsByClass sorted = RowsByClass::Of(of, 4);
  EXPECT_EQ(sorted.begin, (std::vector<std::uint32_t>{0, 3, 3, 5, 5}));
  EXPECT_EQ(sorted.rows, (std::vector<std::uint32_t>{1, 3, 4, 0, 2}));
}

TEST_F(HgtTest, HeadsDivideTheWidth) {
  const ConvKind* const kind = *FindConvKind("hgt");
  const auto options = ModelOptions::Resolve("hgt", DescribeModel(*kind).options, {{"heads", "3"}});
  const auto made = kind->make({.in = 5, .out = 16}, *options);
  EXPECT_STATUS(made, kInvalidArgument);
  EXPECT_NE(made.error().message().find("16 columns, which 3 heads"), std::string::npos);
}

}  // namespace
}  // namespace rhizome
