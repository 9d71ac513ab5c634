#include "gnn/tables/link_step.h"

#include <torch/torch.h>

#include <algorithm>
#include <random>

#include "gnn/links/decoder_registry.h"
#include "index/base/parallel.h"
#include "testing/testing.h"

// The loss and the gradients of a batch against libtorch's autograd in double precision, over all
// decoders of tables and all losses; with vertex types, negatives that equal the truth or are
// masked, reciprocal relations and the penalty. The same bits for any number of threads.

namespace rhizome {
namespace {

constexpr std::size_t kStepDim = 20;
constexpr std::size_t kRelations = 3;
constexpr VertexId kVertices = 40;
constexpr VertexId kFirstOfSecondType = 25;

TypeId TypeOfVertex(VertexId v) { return v < kFirstOfSecondType ? 0 : 1; }

std::pair<torch::Tensor, torch::Tensor> HalvesOf(const torch::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return {halves[0], halves[1]};
}

/// The scores of edges, from the papers' formulas.
torch::Tensor ScoreOf(const std::string& decoder, const torch::Tensor& src,
                      const torch::Tensor& relation, const torch::Tensor& dst) {
  if (decoder == "dot") return (src * dst).sum(-1);
  if (decoder == "distmult") return (src * relation * dst).sum(-1);
  if (decoder == "transe") return -(src + relation - dst).abs().sum(-1);
  const auto [a, b] = HalvesOf(src);
  const auto [c, d] = HalvesOf(dst);
  if (decoder == "complex") {
    const auto [u, v] = HalvesOf(relation);
    return (a * u * c + a * v * d + b * u * d - b * v * c).sum(-1);
  }
  const auto u = relation.cos();
  const auto v = relation.sin();
  return -((a * u - b * v - c).square() + (a * v + b * u - d).square()).sqrt().sum(-1);
}

torch::Tensor LossOf(LinkLoss loss, double margin, const torch::Tensor& truth,
                     const torch::Tensor& negatives) {
  if (loss == LinkLoss::kSoftmax)
    return torch::cat({truth.reshape({1}), negatives}).logsumexp(0) - truth;
  if (loss == LinkLoss::kSelfAdversarial)
    return -torch::log_sigmoid(margin + truth) -
           (negatives.softmax(0).detach() * torch::log_sigmoid(-margin - negatives)).sum();
  if (loss == LinkLoss::kMargin)
    return negatives.numel() == 0 ? truth * 0 : torch::relu(margin - truth + negatives).mean();
  return -torch::log_sigmoid(truth) -
         (negatives.numel() == 0 ? truth * 0 : torch::log_sigmoid(-negatives).mean());
}

torch::Tensor CubesOf(bool complex_rows, const torch::Tensor& row) {
  if (!complex_rows) return row.abs().pow(3).sum();
  const auto [re, im] = HalvesOf(row);
  return (re.square() + im.square()).pow(1.5).sum();
}

struct Inputs {
  LinkBatch batch;
  std::vector<float> values;     // [kVertices, kStepDim]: every vertex is in the batch
  std::vector<float> relations;  // [2 * kRelations, width]
  NegativeMask mask = {};        // empty: none
};

class LinkStepTest : public ::testing::TestWithParam<std::tuple<std::string, LinkLoss>> {
 protected:
  LinkStepTest() {
    const auto kind = FindDecoderKind(std::get<0>(GetParam()));
    EXPECT_OK(kind);
    kind_ = *kind;
    auto made = kind_->make({.dim = kStepDim, .file = TensorFile()});
    EXPECT_OK(made);
    decoder_ = *std::move(made);
    options_ = {
        .loss = std::get<1>(GetParam()),
        .margin = 1.5F,
        .n3 = 0.3F,
        .complex_rows = kind_->complex_rows,
        .relations = kRelations,
        .relation_width = kind_->relation_width == nullptr ? 0 : kind_->relation_width(kStepDim)};
    options_.relation_stride = options_.relation_width;
  }

  Inputs Draw(int edges) {
    Inputs in;
    std::normal_distribution<float> normal(0, 0.5F);
    const auto vertex = [&] { return static_cast<VertexId>(rng_() % kVertices); };
    for (int e = 0; e < edges; ++e)
      in.batch.edges.push_back({vertex(), vertex(), static_cast<TypeId>(rng_() % kRelations)});
    for (auto& side : in.batch.negatives) {
      side = {{.type = 0, .vertices = {}}, {.type = 1, .vertices = {}}};
      for (int k = 0; k < 70; ++k) {
        side[0].vertices.push_back(static_cast<VertexId>(rng_() % kFirstOfSecondType));
        side[1].vertices.push_back(static_cast<VertexId>(
            kFirstOfSecondType + static_cast<VertexId>(rng_() % (kVertices - kFirstOfSecondType))));
      }
    }
    for (VertexId v = 0; v < kVertices; ++v) in.batch.rows.push_back(v);
    in.values.resize(static_cast<std::size_t>(kVertices) * kStepDim);
    in.relations.resize(2 * kRelations * options_.relation_width);
    for (float& x : in.values) x = normal(rng_);
    for (float& x : in.relations) x = normal(rng_);
    return in;
  }

  /// Masks about a third of the negatives of each edge, all of them for the first one.
  void DrawMask(Inputs& in) {
    for (std::size_t side = 0; side < 2; ++side) {
      MaskedNegatives& masked = in.mask[side];
      for (std::size_t e = 0; e < in.batch.edges.size(); ++e) {
        for (std::uint32_t k = 0; k < 70; ++k)
          if (e == 0 || rng_() % 3 == 0) masked.positions.push_back(k);
        masked.ends.push_back(masked.positions.size());
      }
    }
  }

  LinkGradients Run(const Inputs& in, int threads) {
    LinkStep step(dynamic_cast<const QueryDecoder&>(*decoder_), options_,
                  {.row_of = [](VertexId v) { return Row{v}; }, .type_of = TypeOfVertex});
    LinkGradients gradients;
    TaskArena arena(threads);
    const NegativeMask* const mask = in.mask[0].ends.empty() ? nullptr : &in.mask;
    arena.execute([&] { step.Compute(in.batch, in.values, in.relations, gradients, mask); });
    return gradients;
  }

  const std::uint64_t seed_ = testing::TestSeed();
  std::mt19937_64 rng_{seed_};
  const DecoderKind* kind_ = nullptr;
  std::unique_ptr<PairDecoder> decoder_;
  LinkStep::Options options_;
};

TEST_P(LinkStepTest, EqualsAutograd) {
  SCOPED_TRACE(seed_);
  for (const auto& [reciprocal, masks] : {std::pair{false, false}, {true, false}, {false, true}}) {
    if (reciprocal && options_.relation_width == 0) continue;
    options_.reciprocal = reciprocal;
    Inputs in = Draw(30);
    if (masks) DrawMask(in);
    const LinkGradients got = Run(in, 2);
    const auto width = static_cast<std::int64_t>(options_.relation_width);
    auto values = torch::tensor(in.values).to(torch::kDouble).reshape({kVertices, -1});
    auto relations = width == 0
                         ? torch::zeros({2 * kRelations, 1}, torch::kDouble)
                         : torch::tensor(in.relations).to(torch::kDouble).reshape({-1, width});
    values.set_requires_grad(true);
    relations.set_requires_grad(true);
    auto loss = torch::zeros({}, torch::kDouble);
    auto penalty = torch::zeros({}, torch::kDouble);
    for (std::size_t e = 0; e < in.batch.edges.size(); ++e) {
      const VertexPair& edge = in.batch.edges[e];
      for (const int side : {0, 1}) {
        const bool open_src = side == 0;
        const VertexId open = open_src ? edge.src : edge.dst;
        const VertexId given = open_src ? edge.dst : edge.src;
        const bool inverse = reciprocal && open_src;
        const auto relation = relations[edge.type + (inverse ? static_cast<int>(kRelations) : 0)];
        // A reciprocal query for a source is a query for the target of the inverse relation.
        const auto score = [&](const torch::Tensor& candidates) {
          const auto other = values[given].expand_as(candidates);
          return open_src && !inverse ? ScoreOf(kind_->name, candidates, relation, other)
                                      : ScoreOf(kind_->name, other, relation, candidates);
        };
        std::vector<std::int64_t> negatives;
        std::span<const std::uint32_t> masked;
        if (masks) masked = in.mask[static_cast<std::size_t>(side)].Of(e);
        const std::vector<VertexId>& drawn =
            in.batch.negatives[static_cast<std::size_t>(side)][TypeOfVertex(open)].vertices;
        for (std::uint32_t k = 0; k < drawn.size(); ++k)
          if (drawn[k] != open && std::ranges::find(masked, k) == masked.end())
            negatives.push_back(drawn[k]);
        const auto truth = score(values[open].unsqueeze(0)).squeeze(0);
        loss = loss + LossOf(options_.loss, options_.margin, truth,
                             score(values.index({torch::tensor(negatives, torch::kLong)})));
        penalty = penalty + CubesOf(options_.complex_rows, values[open]) +
                  CubesOf(options_.complex_rows, values[given]);
        if (width == static_cast<std::int64_t>(kStepDim))
          penalty = penalty + CubesOf(options_.complex_rows, relation);
      }
    }
    EXPECT_NEAR(got.loss, loss.item<double>(), 1e-4 * std::abs(loss.item<double>()));
    ((loss + options_.n3 * penalty) / (2.0 * static_cast<double>(in.batch.edges.size())))
        .backward();
    const auto rows = torch::tensor(got.rows).to(torch::kDouble).reshape({kVertices, -1});
    EXPECT_LT((rows - values.grad()).abs().max().item<double>(),
              1e-5 + 1e-4 * values.grad().abs().max().item<double>());
    if (width == 0) continue;
    auto all = torch::zeros_like(relations);
    for (std::size_t i = 0; i < got.relation_rows.size(); ++i)
      all[got.relation_rows[i]] = torch::tensor(
          std::vector<float>(got.relations.begin() + static_cast<std::ptrdiff_t>(i) * width,
                             got.relations.begin() + static_cast<std::ptrdiff_t>(i + 1) * width));
    EXPECT_LT((all - relations.grad()).abs().max().item<double>(),
              1e-5 + 1e-4 * relations.grad().abs().max().item<double>());
  }
}

TEST_P(LinkStepTest, HasTheSameBitsOnAnyNumberOfThreads) {
  SCOPED_TRACE(seed_);
  const Inputs in = Draw(250);
  const LinkGradients one = Run(in, 1);
  const LinkGradients two = Run(in, 2);
  EXPECT_EQ(one.loss, two.loss);
  EXPECT_EQ(one.rows, two.rows);
  EXPECT_EQ(one.relations, two.relations);
}

std::string NameOfStepCase(const ::testing::TestParamInfo<LinkStepTest::ParamType>& info) {
  constexpr const char* kLosses[] = {"Softmax", "SelfAdversarial", "Margin", "Bce"};
  return std::get<0>(info.param) + kLosses[static_cast<std::size_t>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(
    Decoders, LinkStepTest,
    ::testing::Combine(::testing::Values("dot", "distmult", "complex", "transe", "rotate"),
                       ::testing::Values(LinkLoss::kSoftmax, LinkLoss::kSelfAdversarial,
                                         LinkLoss::kMargin, LinkLoss::kBce)),
    NameOfStepCase);

}  // namespace
}  // namespace rhizome
