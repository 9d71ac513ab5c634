#include "gnn/link_train/pair_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "cache/job/safetensors.h"
#include "gnn/ops/dense.h"
#include "gnn/tables/link_loss.h"
#include "index/base/counter_random.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::uint32_t kWeightStream = 103;
constexpr const char* kTensors[] = {"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                    "layers.1.bias"};

/// The mean loss of queries: scores of true ends, [queries], and of negatives, [negatives of a
/// query, queries].
struct QueryLosses : torch::autograd::Function<QueryLosses> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& truths,
                               const torch::Tensor& negatives, std::int64_t loss, double margin) {
    const torch::Tensor of_truths = truths.detach().clone().contiguous();
    const torch::Tensor of_negatives = negatives.detach().clone().contiguous();
    const auto queries = static_cast<std::size_t>(truths.numel());
    std::vector<float> losses(queries);
    LossesOfQueries(static_cast<LinkLoss>(loss), static_cast<float>(margin),
                    1 / static_cast<float>(queries), {of_truths.data_ptr<float>(), queries},
                    {of_negatives.data_ptr<float>(), static_cast<std::size_t>(negatives.numel())},
                    losses);
    context->save_for_backward({of_truths, of_negatives});
    double sum = 0;
    for (const float one : losses) sum += one;
    return torch::tensor(static_cast<float>(sum / static_cast<double>(queries)));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    return {saved[0] * gradients[0], saved[1] * gradients[0], {}, {}};
  }
};

/// Pairs of rows to score.
struct PairLists {
  std::vector<std::int64_t> src, dst;
  void Add(std::uint32_t from, std::uint32_t to) {
    src.push_back(from);
    dst.push_back(to);
  }
};

/// Adds the negatives of one side, [negatives of an edge, edges].
void AddNegatives(const Minibatch& minibatch, std::size_t side, std::size_t each, PairLists& pairs,
                  std::vector<char>& masked) {
  std::map<TypeId, const MinibatchNegatives*> of_type;
  for (const MinibatchNegatives& typed : minibatch.negatives[side]) of_type[typed.type] = &typed;
  std::map<TypeId, std::size_t> seen;
  struct Negatives {
    std::span<const std::uint32_t> of_type;
    std::size_t first;
  };
  std::vector<Negatives> negatives;
  for (const MinibatchPair& pair : minibatch.pairs) {
    const TypeId type = TypeOfSeed(minibatch, side == 1 ? pair.dst : pair.src);
    const std::size_t rank = seen[type]++;
    negatives.push_back({of_type.at(type)->vertices, rank * each});
  }
  for (std::size_t k = 0; k < each; ++k) {
    for (std::size_t e = 0; e < negatives.size(); ++e) {
      const MinibatchPair& pair = minibatch.pairs[e];
      const auto& [vertices, first] = negatives[e];
      const std::uint32_t vertex = vertices[(first + k) % vertices.size()];
      side == 1 ? pairs.Add(pair.src, vertex) : pairs.Add(vertex, pair.dst);
      masked.push_back(vertex == (side == 1 ? pair.dst : pair.src) ? 1 : 0);
    }
  }
}

torch::Tensor Indices(const std::vector<std::int64_t>& numbers) {
  return torch::tensor(at::ArrayRef<std::int64_t>(numbers));
}

/// Scores pairs. The first layer is applied to each row once, not to each pair.
torch::Tensor ScoresOf(const Model& model, const torch::Tensor& rows, const PairLists& pairs) {
  const torch::Tensor& weight = model.DecoderWeight(kTensors[0]);
  const std::int64_t dim = rows.size(1);
  const torch::Tensor of_src = Linear({rows}, weight.narrow(1, 0, dim).contiguous());
  const torch::Tensor of_dst =
      Linear({rows}, weight.narrow(1, dim, dim).contiguous()) + model.DecoderWeight(kTensors[1]);
  const torch::Tensor hidden = torch::relu(of_src.index_select(0, Indices(pairs.src)) +
                                           of_dst.index_select(0, Indices(pairs.dst)));
  return (Linear({hidden}, model.DecoderWeight(kTensors[2])) + model.DecoderWeight(kTensors[3]))
      .flatten();
}

}  // namespace

std::map<std::string, torch::Tensor> FirstPairWeights(std::int64_t dim, std::uint64_t seed) {
  std::map<std::string, torch::Tensor> weights;
  const auto draw = [&](const char* name, std::int64_t out, std::int64_t in) {
    CounterRandom random({.seed = seed, .vertex = weights.size(), .stream = kWeightStream});
    torch::Tensor weight = torch::empty({out, in});
    const double limit = std::sqrt(6.0 / static_cast<double>(in + out));
    for (std::int64_t i = 0; i < weight.numel(); ++i)
      weight.data_ptr<float>()[i] = static_cast<float>((2 * random.Unit() - 1) * limit);
    weights[name] = weight;
  };
  draw(kTensors[0], dim, 2 * dim);
  draw(kTensors[2], 1, dim);
  weights[kTensors[1]] = torch::zeros({dim});
  weights[kTensors[3]] = torch::zeros({1});
  return weights;
}

torch::Tensor PairLoss(const LinkJob& job, const Model& model, const torch::Tensor& rows,
                       const Minibatch& minibatch, const NegativeMask* mask_of_known) {
  const std::size_t each = job.batching.negatives;
  const auto edges = static_cast<std::int64_t>(minibatch.pairs.size());
  // The true pairs, then the negatives of destinations and of sources.
  PairLists pairs;
  for (const MinibatchPair& pair : minibatch.pairs) pairs.Add(pair.src, pair.dst);
  std::vector<char> masked;
  for (const std::size_t side : {1, 0}) {
    const std::size_t first = masked.size();
    AddNegatives(minibatch, side, each, pairs, masked);
    if (mask_of_known == nullptr) continue;
    for (std::size_t e = 0; e < minibatch.pairs.size(); ++e)
      for (const std::uint32_t k : (*mask_of_known)[side].Of(e))
        masked[first + k * minibatch.pairs.size() + e] = 1;
  }
  const torch::Tensor scores = ScoresOf(model, rows, pairs);
  const auto count = static_cast<std::int64_t>(each);
  const torch::Tensor mask =
      torch::from_blob(masked.data(), {2, count, edges}, torch::kInt8).to(torch::kBool);
  torch::Tensor negatives = scores.narrow(0, edges, 2 * count * edges).view({2, count, edges});
  negatives = negatives.masked_fill(mask, kMaskedScore).permute({1, 0, 2}).reshape({count, -1});
  const torch::Tensor truths = scores.narrow(0, 0, edges).repeat({2});
  return QueryLosses::apply(truths, negatives, static_cast<std::int64_t>(job.decoding.step.loss),
                            static_cast<double>(job.decoding.step.margin));
}

std::uint64_t PairLossBytes(const LinkJob& job, const Minibatch& minibatch) {
  const std::uint64_t pairs = minibatch.pairs.size() * (1 + 2 * job.batching.negatives);
  // Hidden rows with their gradients and the two terms of each; and rows before and after.
  const std::uint64_t floats = 5 * pairs + 6 * minibatch.seed_count;
  return floats * static_cast<std::uint64_t>(job.dim) * sizeof(float);
}

std::unique_ptr<PairDecoder> PairDecoderOf(const LinkJob& job, const Model& model) {
  TensorFile file;
  for (const char* const name : kTensors) {
    const torch::Tensor weight = model.DecoderWeight(name).detach().contiguous();
    const float* const values = weight.data_ptr<float>();
    file.tensors[name] = {.shape = weight.sizes().vec(),
                          .values = {values, values + weight.numel()}};
  }
  auto made = job.decoding.kind->make({.dim = static_cast<std::size_t>(job.dim), .file = file});
  RHIZOME_CHECK(made.has_value());  // the weights have the shapes of FirstPairWeights
  return *std::move(made);
}

}  // namespace internal
}  // namespace rhizome
