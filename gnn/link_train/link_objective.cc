#include "gnn/link_train/link_objective.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "gnn/link_train/pair_scores.h"
#include "gnn/tables/sampled_ranks.h"
#include "index/delta/graph_parts.h"
#include "rhizome/loader.h"
#include "storage/base/exceptions.h"

// Loss computes the loss and its gradients by LinkStep and passes them to libtorch
// (GivenGradients); a decoder that scores each pair by itself is computed by libtorch
// (pair_scores.h).

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::span<const float> FloatsOf(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

torch::Tensor TensorOf(std::span<const float> floats, at::IntArrayRef shape) {
  torch::Tensor tensor = torch::empty(shape);
  std::copy(floats.begin(), floats.end(), tensor.data_ptr<float>());
  return tensor;
}

/// Returns a loss whose gradients by the rows and the relations were computed with it.
struct GivenGradients : torch::autograd::Function<GivenGradients> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor&, const torch::Tensor&,
                               double loss, const torch::Tensor& of_rows,
                               const torch::Tensor& of_relations) {
    context->save_for_backward({of_rows, of_relations});
    return torch::tensor(static_cast<float>(loss));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    torch::Tensor of_relations;
    if (saved[1].numel() > 0) of_relations = saved[1] * gradients[0];
    return {saved[0] * gradients[0], of_relations, {}, {}, {}};
  }
};

/// Returns the edges and negatives of a minibatch as a batch over local numbers.
LinkBatch BatchOf(const Minibatch& minibatch) {
  LinkBatch batch;
  batch.edges.reserve(minibatch.pairs.size());
  for (const MinibatchPair& pair : minibatch.pairs)
    batch.edges.push_back({.src = pair.src, .dst = pair.dst, .type = pair.type});
  for (std::size_t side = 0; side < 2; ++side)
    for (const MinibatchNegatives& typed : minibatch.negatives[side])
      batch.negatives[side].push_back(
          {.type = typed.type, .vertices = {typed.vertices.begin(), typed.vertices.end()}});
  batch.rows.resize(minibatch.seed_count);
  std::iota(batch.rows.begin(), batch.rows.end(), CacheKey{0});
  return batch;
}

/// Returns the edges and negatives of a minibatch as vertices of the graph.
LinkBatch VerticesOf(const LinkJob& job, const Minibatch& minibatch) {
  const auto parts = job.graph->parts();
  const auto vertex_at = [&](VertexId local) {
    return parts->VertexAt(minibatch.rows[static_cast<std::size_t>(local)]);
  };
  LinkBatch batch = BatchOf(minibatch);
  for (VertexPair& edge : batch.edges)
    edge = {.src = vertex_at(edge.src), .dst = vertex_at(edge.dst), .type = edge.type};
  for (auto& side : batch.negatives)
    for (TypedNegatives& typed : side)
      std::ranges::transform(typed.vertices, typed.vertices.begin(), vertex_at);
  return batch;
}

}  // namespace

LinkObjective::LinkObjective(const LinkJob& job, const Model& model, std::uint32_t threads)
    : job_(job), model_(model), arena_(static_cast<int>(std::max<std::uint32_t>(threads, 1))) {
  if (!job.shared()) return;
  step_.emplace(*job.decoding.decoder, job.decoding.step,
                LinkStep::Vertices{.row_of = [](VertexId local) { return Row{local}; },
                                   .type_of =
                                       [this](VertexId local) {
                                         return TypeOfSeed(*minibatch_,
                                                           static_cast<std::size_t>(local));
                                       }});
}

std::uint64_t LinkObjective::Examples(const Minibatch& minibatch) const {
  return minibatch.pairs.size();
}

torch::Tensor LinkObjective::Relations() const {
  return job_.decoding.step.relation_width == 0 ? torch::empty({0})
                                                : model_.DecoderWeight("relations");
}

torch::Tensor LinkObjective::Loss(const torch::Tensor& rows, const Minibatch& minibatch) {
  if (minibatch.pairs.empty()) return rows.sum() * 0;
  if (job_.filter) {
    const std::uint64_t each = job_.shared() ? 0 : job_.batching.negatives;
    const Status masked = job_.filter->Mask(VerticesOf(job_, minibatch), each, mask_);
    if (!masked.ok()) ThrowStatus(masked);
  }
  const NegativeMask* const mask = job_.filter ? &mask_ : nullptr;
  if (!job_.shared()) return PairLoss(job_, model_, rows, minibatch, mask);
  minibatch_ = &minibatch;
  const torch::Tensor values = rows.detach().contiguous();
  const torch::Tensor relations = Relations();
  const LinkBatch batch = BatchOf(minibatch);
  LinkGradients gradients;
  arena_.execute([&] {
    step_->Compute(batch, FloatsOf(values), FloatsOf(relations.detach()), gradients, mask);
  });
  const double loss = gradients.loss / static_cast<double>(2 * batch.edges.size());
  if (!at::GradMode::is_enabled()) return torch::tensor(static_cast<float>(loss));
  torch::Tensor of_relations = torch::zeros_like(relations.detach());
  const std::size_t width = job_.decoding.step.relation_width;
  for (std::size_t i = 0; i < gradients.relation_rows.size(); ++i)
    std::copy_n(gradients.relations.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                of_relations.data_ptr<float>() + gradients.relation_rows[i] * width);
  return GivenGradients::apply(rows, relations, loss, TensorOf(gradients.rows, values.sizes()),
                               of_relations);
}

double LinkObjective::Measure(const torch::Tensor& rows, const Minibatch& minibatch) {
  const torch::Tensor values = rows.detach().contiguous();
  const torch::Tensor relations = Relations().detach();
  const std::unique_ptr<PairDecoder> of_pairs =
      job_.shared() ? nullptr : PairDecoderOf(job_, model_);
  const SampledRanks ranks{.decoder = job_.shared() ? *job_.decoding.made : *of_pairs,
                           .step = job_.decoding.step,
                           .dim = static_cast<std::size_t>(job_.dim),
                           .rows = values.data_ptr<float>(),
                           .relations = relations.data_ptr<float>()};
  double sum = 0;
  for (const EdgeEnd open : {EdgeEnd::kDst, EdgeEnd::kSrc}) {
    for (const MinibatchNegatives& candidates :
         minibatch.negatives[open == EdgeEnd::kDst ? 1 : 0]) {
      std::vector<MinibatchPair> pairs;
      for (const MinibatchPair& pair : minibatch.pairs)
        if (TypeOfSeed(minibatch, open == EdgeEnd::kDst ? pair.dst : pair.src) == candidates.type)
          pairs.push_back(pair);
      arena_.execute([&] { sum += ranks.ReciprocalSum(pairs, open, candidates.vertices); });
    }
  }
  return sum / 2;
}

std::uint64_t LinkObjective::StepBytes(const Minibatch& minibatch) const {
  if (!job_.shared()) return PairLossBytes(job_, minibatch);
  LinkBatchOptions batch = job_.batching;
  batch.batch_size = minibatch.pairs.size();
  const std::uint64_t types =
      std::max(minibatch.negatives[0].size(), minibatch.negatives[1].size());
  const auto dim = static_cast<std::size_t>(job_.dim);
  return LinkStep::Bytes(batch, types, dim) + 3 * minibatch.seed_count * dim * sizeof(float);
}

}  // namespace internal
}  // namespace rhizome
