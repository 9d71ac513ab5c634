#pragma once

#include <cstdint>

#include "gnn/ops/torch.h"

namespace rhizome {
struct Minibatch;
inline namespace internal {

/// Loss of a training whose examples are not vertices with labels, such as links.
/// Threads: one at a time.
class Objective {
 public:
  virtual ~Objective() = default;

  /// Returns the number of examples of a minibatch.
  virtual std::uint64_t Examples(const Minibatch& minibatch) const = 0;

  /// Computes the mean loss of a minibatch's examples from the model's scores of its seeds,
  /// [seeds, classes]. Differentiable by the scores and by the weights of the decoder.
  virtual torch::Tensor Loss(const torch::Tensor& scores, const Minibatch& minibatch) = 0;

  /// Returns the sum over the examples of the monitored metric.
  virtual double Measure(const torch::Tensor& scores, const Minibatch& minibatch) = 0;

  /// Returns the bytes that a step on the minibatch needs in addition to the model's.
  virtual std::uint64_t StepBytes(const Minibatch& minibatch) const = 0;
};

}  // namespace internal
}  // namespace rhizome
