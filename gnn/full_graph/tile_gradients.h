#pragma once

#include <vector>

#include "cache/feed/task_labels.h"
#include "cache/feed/vertex_score_sink.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Returns `tensor` as a leaf of a new autograd graph. `wanted`: whether it needs a gradient.
inline torch::Tensor Leaf(const torch::Tensor& tensor, bool wanted) {
  return tensor.detach().set_requires_grad(wanted);
}

inline std::vector<torch::Tensor> GradientsOf(const std::vector<torch::Tensor>& outputs,
                                              const std::vector<torch::Tensor>& gradients,
                                              const std::vector<torch::Tensor>& inputs) {
  return torch::autograd::grad(outputs, inputs, gradients, /*retain_graph=*/std::nullopt,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

/// Passes the scores of rows to a sink.
inline void Give(std::span<const Row> rows, const torch::Tensor& scores, VertexScoreSink& sink) {
  const torch::Tensor values = scores.detach().contiguous();
  sink.Take(rows, {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())});
}

/// Returns the rows of a set among rows [first, first + count).
std::vector<Row> MembersOf(const Labels& labels, Row first, std::int64_t count, Split set);

}  // namespace internal
}  // namespace rhizome
