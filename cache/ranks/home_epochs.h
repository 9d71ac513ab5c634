#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct HomeEpochsOptions {
  std::uint64_t batch_size = 1;  ///< of the mean home, at least 1
  std::uint64_t seed = 1;        ///< of the orders
  std::uint32_t epochs = 1;      ///< at most EpochPlan::kMostEpochs
  std::uint32_t valid_every = 1;
  std::uint64_t most_train_steps = 0;  ///< of an epoch; 0: all
};

/// The minibatches of a training whose unit of work is a home: in every step each home has one, of
/// its own vertices, to learn in an order of the epoch's own, to measure in one fixed order with
/// fixed neighbours. Homes have as many steps as each other, so their minibatches are as large as
/// their share of the vertices. Nothing depends on which rank has which home. The minibatches of a
/// single home are those of EpochPlan.
class HomeEpochs {
 public:
  /// `train`, `valid`: by home. At least one home has a training vertex.
  HomeEpochs(std::vector<std::vector<VertexId>> train, std::vector<std::vector<VertexId>> valid,
             const HomeEpochsOptions& options);

  std::uint32_t homes() const { return static_cast<std::uint32_t>(train_.size()); }
  const EpochCounts& counts() const { return counts_; }

  /// The seeds of a home in a step of the training or of the validation part of an epoch; 0 where a
  /// home has fewer vertices than there are steps, and this step has none of them.
  std::uint64_t SeedsOf(std::uint32_t home, bool is_valid, std::uint64_t step) const;

  /// The training vertices of a home, in no epoch's order.
  std::span<const VertexId> TrainingVertices(std::uint32_t home) const { return train_[home]; }

  /// Shuffles the training vertices of some homes for an epoch.
  void Begin(std::uint32_t epoch, std::uint32_t first_home, std::uint32_t end_home);

  /// Returns those seeds, of the epoch that was begun, and of a home that was shuffled for it.
  SeedBatch Take(std::uint32_t home, bool is_valid, std::uint64_t step) const;

  /// The home and the step that a minibatch's tag names.
  struct Place {
    std::uint32_t home = 0;
    bool is_valid = false;
    std::uint64_t step = 0;
  };
  Place Decode(std::uint64_t tag) const;

 private:
  std::pair<std::uint64_t, std::uint64_t> RangeOf(std::uint32_t home, bool is_valid,
                                                  std::uint64_t step) const;

  std::vector<std::vector<VertexId>> train_, valid_;  // by home
  HomeEpochsOptions options_;
  std::uint64_t all_train_steps_ = 0;  // of an epoch, without most_train_steps
  EpochCounts counts_;
  std::uint32_t epoch_ = 0;
  std::vector<std::vector<VertexId>> shuffled_;  // by home: train_, in the epoch's order
};

/// The minibatches of some consecutive homes, step after step, over all epochs: those of a rank. A
/// superbatch has those of `superbatch` steps; 0: of an epoch.
class HomeSeeds {
 public:
  HomeSeeds(HomeEpochs epochs, std::uint32_t first_home, std::uint32_t homes,
            std::uint64_t superbatch)
      : epochs_(std::move(epochs)),
        first_(first_home),
        end_(first_home + homes),
        superbatch_(superbatch),
        home_(first_) {}

  /// Returns the next minibatch that has seeds, or nothing after the last epoch.
  std::optional<SeedBatch> Next();

  /// Skips the next `steps`, to resume a training. Call it before Next.
  void Skip(std::uint64_t steps);

  /// The number of the step, over all epochs, of the minibatch that Next returned last.
  std::uint64_t step() const { return taken_step_; }

 private:
  void Advance();

  HomeEpochs epochs_;
  std::uint32_t first_, end_;
  std::uint64_t superbatch_;
  std::uint64_t begin_ = 0;  // the step that it began with
  std::optional<std::uint64_t> taken_superbatch_;
  std::uint32_t epoch_ = 0;
  std::uint64_t step_ = 0;  // within the epoch; training comes before validation
  std::uint32_t home_;      // within the step
  bool begun_ = false;      // the epoch
  std::uint64_t taken_step_ = 0;
};

}  // namespace internal
}  // namespace rhizome
