#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// The minibatches of a training whose unit of work is a home: in every step each home has one, of
/// its own training vertices in an order of the epoch's own. Homes have as many steps as each
/// other, so their minibatches are as large as their share of the training vertices. Nothing
/// depends on which rank has which home. The minibatches of a single home are those of EpochPlan.
class HomeEpochs {
 public:
  /// `batch_size`: of the mean home, at least 1. At least one home has a training vertex.
  HomeEpochs(std::vector<std::vector<VertexId>> train_of_home, std::uint64_t batch_size,
             std::uint64_t seed);

  /// Steps of an epoch.
  std::uint64_t steps() const { return steps_; }
  std::uint32_t homes() const { return static_cast<std::uint32_t>(train_of_home_.size()); }

  /// Shuffles for an epoch.
  void Begin(std::uint32_t epoch);

  /// Returns a home's seeds of a step of the epoch; none where it has fewer vertices than there are
  /// steps and this step has none of them.
  SeedBatch Take(std::uint32_t home, std::uint64_t step) const;

 private:
  std::vector<std::vector<VertexId>> train_of_home_;
  const std::uint64_t batch_size_;
  const std::uint64_t seed_;
  std::uint64_t steps_ = 0;
  std::uint32_t epoch_ = 0;
  std::vector<std::vector<VertexId>> shuffled_;  // by home, in the epoch's order
  std::vector<SeedBatch> of_one_home_;           // the epoch's minibatches, if there is one home
};

}  // namespace rhizome::inline internal
