#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/minibatch_sampler.h"
#include "rhizome/export.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct HomeEpochsOptions {
  std::uint64_t batch_size = 1;  ///< seeds per home and step on average, min 1
  std::uint64_t seed = 1;        ///< seeds the shuffles
  std::uint32_t epochs = 1;      ///< max EpochPlan::kMaxEpochs
  std::uint32_t valid_every = 1;
  std::uint64_t max_train_steps = 0;  ///< limit per epoch; 0: no limit
};

/// The minibatches of distributed training, in which the unit of work is a home (a group of
/// vertices that are stored on the same rank). In every step each home has one minibatch of its own
/// vertices: training vertices in a new order for each epoch, validation vertices in a fixed order
/// with fixed neighbours. All homes have the same number of steps, so the size of their minibatches
/// is in proportion to their number of vertices. The minibatches do not depend on the assignment of
/// homes to ranks. With a single home they are the minibatches of EpochPlan.
class HomeEpochs {
 public:
  /// `train` and `valid` are indexed by home. At least one home must have a training vertex.
  HomeEpochs(std::vector<std::vector<VertexId>> train, std::vector<std::vector<VertexId>> valid,
             const HomeEpochsOptions& options);

  std::uint32_t homes() const { return static_cast<std::uint32_t>(train_.size()); }
  const EpochCounts& counts() const { return counts_; }

  /// Returns the number of seeds of a home in a step of the training or validation part of an
  /// epoch. It is 0 in some steps if the home has fewer vertices than there are steps.
  std::uint64_t SeedsOf(std::uint32_t home, bool is_valid, std::uint64_t step) const;

  /// Returns the training vertices of a home, unshuffled.
  std::span<const VertexId> TrainingVertices(std::uint32_t home) const { return train_[home]; }

  /// Starts an epoch: shuffles the training vertices of the homes [first_home, end_home).
  void Begin(std::uint32_t epoch, std::uint32_t first_home, std::uint32_t end_home);

  /// Returns those seeds for the epoch that was started. The home must be one that Begin shuffled.
  SeedBatch Take(std::uint32_t home, bool is_valid, std::uint64_t step) const;

  /// The home and step that a minibatch's tag encodes.
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
  std::uint64_t all_train_steps_ = 0;  // per epoch, without max_train_steps
  EpochCounts counts_;
  std::uint32_t epoch_ = 0;
  std::vector<std::vector<VertexId>> shuffled_;  // by home: train_ in the order of the epoch
};

/// The minibatches of consecutive homes, as one rank processes them, step by step over all epochs.
/// A superbatch consists of the minibatches of `superbatch` steps; 0: of an epoch.
class HomeSeeds {
 public:
  HomeSeeds(HomeEpochs epochs, std::uint32_t first_home, std::uint32_t homes,
            std::uint64_t superbatch)
      : epochs_(std::move(epochs)),
        first_(first_home),
        end_(first_home + homes),
        superbatch_(superbatch),
        home_(first_) {}

  /// Returns the next minibatch that has seeds, or nullopt after the last epoch.
  std::optional<SeedBatch> Next();

  /// Skips the next `steps` steps, to resume training. Must be called before Next.
  void Skip(std::uint64_t steps);

  /// Returns the step, counted over all epochs, of the minibatch that Next returned last.
  std::uint64_t step() const { return taken_step_; }

 private:
  void Advance();

  HomeEpochs epochs_;
  std::uint32_t first_, end_;
  std::uint64_t superbatch_;
  std::uint64_t begin_ = 0;  // first step after Skip
  std::optional<std::uint64_t> taken_superbatch_;
  std::uint32_t epoch_ = 0;
  std::uint64_t step_ = 0;  // within the epoch; training comes before validation
  std::uint32_t home_;      // within the step
  bool begun_ = false;      // whether the epoch was started
  std::uint64_t taken_step_ = 0;
};

}  // namespace internal
}  // namespace rhizome
