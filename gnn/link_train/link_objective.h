#pragma once

#include <cstdint>
#include <optional>

#include "gnn/link_train/link_job.h"
#include "gnn/models/model.h"
#include "gnn/tables/link_step.h"
#include "gnn/train/objective.h"
#include "index/base/parallel.h"
#include "rhizome/loader.h"

namespace rhizome {
inline namespace internal {

/// The loss of links over the rows of an encoder. Decoders whose negatives share a query use the
/// closed-form gradients of tables (LinkStep).
/// Ownership: `job` and `model`, which has the decoder's weights, must outlive it.
class LinkObjective final : public Objective {
 public:
  LinkObjective(const LinkJob& job, const Model& model, std::uint32_t threads);

  std::uint64_t Examples(const Minibatch& minibatch) const override;
  torch::Tensor Loss(const torch::Tensor& rows, const Minibatch& minibatch) override;

  /// Returns the sum over edges of the mean over both ends of 1 / rank among the candidates of the
  /// minibatch (SampledRanks).
  double Measure(const torch::Tensor& rows, const Minibatch& minibatch) override;

  std::uint64_t StepBytes(const Minibatch& minibatch) const override;

 private:
  torch::Tensor Relations() const;

  const LinkJob& job_;
  const Model& model_;
  TaskArena arena_;
  const Minibatch* minibatch_ = nullptr;  // of the call
  NegativeMask mask_;                     // of the call
  std::optional<LinkStep> step_;          // absent: the decoder scores each pair by itself
};

}  // namespace internal
}  // namespace rhizome
