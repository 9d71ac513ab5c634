#include "gnn/link_train/link_objective.h"

#include <torch/torch.h>

#include <random>

#include "gnn/link_train/pair_scores.h"
#include "gnn/links/decoder_registry.h"
#include "testing/testing.h"

// The loss of links over an encoder's rows against libtorch's autograd in double precision, for a
// decoder whose negatives share a query and for one that scores each pair; and the ranks of the
// validation set against counting, with many equal scores.

namespace rhizome {
namespace {

constexpr std::int64_t kObjectiveDim = 12;
constexpr std::size_t kObjectiveRelations = 3;
constexpr std::uint32_t kSeeds = 40, kFirstOfOtherType = 25;

class LinkObjectiveTest : public ::testing::Test {
 protected:
  /// Makes a job with a decoder, and a model with its weights.
  void Make(const std::string& name, bool reciprocal) {
    job_.dim = kObjectiveDim;
    LinkDecoding& decoding = job_.decoding = LinkDecoding();
    decoding.kind = FindDecoderKind(name).value();
    const auto dim = static_cast<std::size_t>(kObjectiveDim);
    const std::size_t width =
        decoding.kind->relation_width == nullptr ? 0 : decoding.kind->relation_width(dim);
    decoding.step = {.loss = LinkLoss::kSoftmax,
                     .reciprocal = reciprocal,
                     .relations = kObjectiveRelations,
                     .relation_width = width,
                     .relation_stride = width};
    auto made = decoding.kind->make({.dim = dim, .file = TensorFile()});
    if (made) decoding.made = *std::move(made);
    decoding.decoder = dynamic_cast<const QueryDecoder*>(decoding.made.get());
    job_.batching.negatives = 3;
    model_.emplace(
        Model::Create({.spec = {.kind = "sage"}, .inputs = 4, .classes = kObjectiveDim}, 1)
            .value());
    model_->SetDecoder(FirstDecoderWeights(job_, seed_));
  }

  /// Draws edges; each side has `each` negatives for every edge, of the type of the replaced end.
  Minibatch Draw(std::size_t edges, std::size_t each) {
    Minibatch minibatch;
    minibatch.seed_count = kSeeds;
    minibatch.rows.resize(kSeeds);
    for (std::uint32_t v = 0; v < kSeeds; ++v)
      minibatch.vertex_types.push_back(v < kFirstOfOtherType ? 0 : 1);
    const auto any = [&] { return static_cast<std::uint32_t>(rng_() % kSeeds); };
    for (std::size_t e = 0; e < edges; ++e)
      minibatch.pairs.push_back({any(), any(), static_cast<TypeId>(rng_() % kObjectiveRelations)});
    for (std::size_t side = 0; side < 2; ++side) {
      minibatch.negatives[side] = {{.type = 0, .vertices = {}}, {.type = 1, .vertices = {}}};
      for (const MinibatchPair& pair : minibatch.pairs) {
        const TypeId type = minibatch.vertex_types[side == 0 ? pair.src : pair.dst];
        for (std::size_t k = 0; k < each; ++k)
          minibatch.negatives[side][type].vertices.push_back(
              type == 0 ? any() % kFirstOfOtherType
                        : kFirstOfOtherType + any() % (kSeeds - kFirstOfOtherType));
      }
    }
    return minibatch;
  }

  /// Returns a score in double precision. `open_src`: the source is replaced.
  torch::Tensor Score(const torch::Tensor& rows,
                      const std::map<std::string, torch::Tensor>& weights, std::uint32_t src,
                      std::uint32_t dst, TypeId type, bool open_src) const {
    const torch::Tensor a = rows[src], b = rows[dst];
    if (job_.decoding.kind->name == "mlp") {
      const torch::Tensor hidden = torch::relu(
          weights.at("layers.0.weight").mv(torch::cat({a, b})) + weights.at("layers.0.bias"));
      return (weights.at("layers.1.weight").mv(hidden) + weights.at("layers.1.bias"))[0];
    }
    const bool inverse = job_.decoding.step.reciprocal && open_src;
    const torch::Tensor relation =
        weights.at("relations")[type + (inverse ? kObjectiveRelations : 0)];
    return (a * relation * b).sum();
  }

  const std::uint64_t seed_ = testing::TestSeed();
  std::mt19937_64 rng_{seed_};
  LinkJob job_;
  std::optional<Model> model_;
};

void ExpectClose(const torch::Tensor& got, const torch::Tensor& wanted, const std::string& what) {
  EXPECT_LT((got.to(torch::kDouble) - wanted).abs().max().item<double>(), 1e-5) << what;
}

TEST_F(LinkObjectiveTest, GradientsEqualAutograd) {
  SCOPED_TRACE(seed_);
  struct Case {
    const char* name;
    bool reciprocal = false;
    bool masks = false;
  };
  for (const auto& [name, reciprocal, masks] :
       {Case{"distmult"}, {"distmult", true}, {"mlp"}, {"mlp", false, true}}) {
    Make(name, reciprocal);
    const bool shared = job_.shared();
    const Minibatch minibatch = Draw(17, 3);
    NegativeMask mask;  // all negatives of the first edge, and some others
    for (MaskedNegatives& masked : mask) {
      for (std::size_t e = 0; e < 17; ++e) {
        for (std::uint32_t k = 0; k < 3; ++k)
          if (e == 0 || rng_() % 3 == 0) masked.positions.push_back(k);
        masked.ends.push_back(masked.positions.size());
      }
    }
    const torch::Tensor rows = torch::randn({kSeeds, kObjectiveDim}).requires_grad_(true);
    LinkObjective objective(job_, *model_, 2);
    const torch::Tensor loss =
        masks ? PairLoss(job_, *model_, rows, minibatch, &mask) : objective.Loss(rows, minibatch);
    loss.backward();

    const torch::Tensor exact = rows.detach().to(torch::kDouble).requires_grad_(true);
    std::map<std::string, torch::Tensor> weights;
    for (const auto& [key, tensor] : FirstDecoderWeights(job_, seed_))
      weights[key] = tensor.to(torch::kDouble).requires_grad_(true);
    torch::Tensor sum = torch::zeros({}, torch::kDouble);
    for (std::size_t side = 0; side < 2; ++side) {
      std::map<TypeId, std::size_t> seen;
      for (std::size_t e = 0; e < minibatch.pairs.size(); ++e) {
        const MinibatchPair& pair = minibatch.pairs[e];
        const bool open_src = side == 0;
        const std::uint32_t open = open_src ? pair.src : pair.dst;
        const TypeId type = minibatch.vertex_types[open];
        std::span<const std::uint32_t> masked;
        if (masks) masked = mask[side].Of(e);
        const torch::Tensor truth = Score(exact, weights, pair.src, pair.dst, pair.type, open_src);
        std::vector<torch::Tensor> scores = {truth};
        const auto& negatives = minibatch.negatives[side][type].vertices;
        const std::size_t first = shared ? 0 : 3 * seen[type]++;
        const std::size_t count = shared ? negatives.size() : 3;
        for (std::size_t k = first; k < first + count; ++k)
          if (negatives[k] != open && std::ranges::find(masked, k - first) == masked.end())
            scores.push_back(Score(exact, weights, open_src ? negatives[k] : pair.src,
                                   open_src ? pair.dst : negatives[k], pair.type, open_src));
        sum = sum + torch::stack(scores).logsumexp(0) - truth;
      }
    }
    (sum / (2 * 17)).backward();
    EXPECT_NEAR(loss.item<double>(), sum.item<double>() / (2 * 17), 1e-5) << name;
    ExpectClose(rows.grad(), exact.grad(), name);
    for (const auto& [key, tensor] : weights)
      ExpectClose(model_->DecoderWeight(key).grad(), tensor.grad(), key);
  }
}

TEST_F(LinkObjectiveTest, AMinibatchWithoutEdgesHasNoLoss) {
  Make("distmult", false);
  Minibatch minibatch;
  minibatch.seed_count = 1;
  const torch::Tensor rows = torch::randn({1, kObjectiveDim}).requires_grad_(true);
  LinkObjective objective(job_, *model_, 1);
  const torch::Tensor loss = objective.Loss(rows, minibatch);
  loss.backward();
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(rows.grad().abs().sum().item<float>(), 0);
}

TEST_F(LinkObjectiveTest, RanksEqualCountingWithTies) {
  SCOPED_TRACE(seed_);
  for (const bool reciprocal : {false, true}) {
    Make("distmult", reciprocal);
    std::map<std::string, torch::Tensor> weights = {
        {"relations",
         torch::randint(-1, 2, {reciprocal ? 6 : 3, kObjectiveDim}).to(torch::kFloat32)}};
    model_->SetDecoder(weights);
    weights["relations"] = weights["relations"].to(torch::kDouble);
    Minibatch minibatch = Draw(90, 0);
    for (auto& side : minibatch.negatives) {
      for (std::uint32_t v = 0; v < kSeeds; v += 2)
        side[v < kFirstOfOtherType ? 0 : 1].vertices.push_back(v);
    }
    const torch::Tensor rows = torch::randint(-1, 2, {kSeeds, kObjectiveDim}).to(torch::kFloat32);
    LinkObjective objective(job_, *model_, 2);
    const double got = objective.Measure(rows, minibatch);
    const torch::Tensor exact = rows.to(torch::kDouble);
    double wanted = 0;
    std::uint64_t ties = 0;
    for (std::size_t side = 0; side < 2; ++side) {
      for (const MinibatchPair& pair : minibatch.pairs) {
        const bool open_src = side == 0;
        const std::uint32_t open = open_src ? pair.src : pair.dst;
        const auto score = [&](std::uint32_t v) {
          return Score(exact, weights, open_src ? v : pair.src, open_src ? pair.dst : v, pair.type,
                       open_src)
              .item<double>();
        };
        double rank = 1;
        for (const std::uint32_t v :
             minibatch.negatives[side][minibatch.vertex_types[open]].vertices) {
          if (v == open) continue;
          rank += score(v) > score(open) ? 1 : (score(v) == score(open) ? .5 : 0);
          ties += score(v) == score(open) ? 1 : 0;
        }
        wanted += 1 / rank / 2;
      }
    }
    EXPECT_GT(ties, 10U);
    EXPECT_NEAR(got, wanted, 1e-9);
  }
}

}  // namespace
}  // namespace rhizome
