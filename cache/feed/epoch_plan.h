#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cache/feed/minibatch_sampler.h"
#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct EpochPlanOptions {
  std::uint64_t batch_size = 1;
  std::uint32_t epochs = 1;  ///< max kMaxEpochs
  std::uint64_t seed = 1;    ///< seeds the shuffles of all epochs

  /// Whether each epoch shuffles the training vertices. If false, they keep the given order. In
  /// both cases each epoch draws its own neighbours.
  bool shuffle = true;
  bool drop_last = false;  ///< drop the last training minibatch if it is smaller than batch_size

  /// Number of ranks that share the training vertices, and the index of this rank. All ranks use
  /// the same options except `rank`. Round i of an epoch consists of minibatch i of every rank, in
  /// rank order. The vertices that remain after the last full round are divided evenly among the
  /// ranks. If fewer vertices than ranks remain, they are divided together with the last full round
  /// (unless drop_last discards them).
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;

  std::uint64_t max_train_batches = 0;  ///< limit per epoch; 0: no limit

  /// The validation vertices follow the training vertices in every valid_every-th epoch (min 1),
  /// and always in the last epoch.
  std::uint32_t valid_every = 1;
};

/// Step counts of a training run. Every epoch consists of training steps; some epochs also have
/// validation steps after them.
struct EpochCounts {
  std::uint32_t epochs = 1;
  std::uint32_t valid_every = 1;  ///< as EpochPlanOptions
  std::uint64_t train = 0;        ///< training steps per epoch
  std::uint64_t valid = 0;        ///< validation steps per validated epoch; 0: no validation set

  /// Returns whether `epoch`, counted from 0, includes the validation steps.
  bool HasValid(std::uint32_t epoch) const;

  /// Returns the number of steps in an epoch, before an epoch (all steps if `epoch` is past the
  /// last), and in total.
  std::uint64_t Of(std::uint32_t epoch) const { return train + (HasValid(epoch) ? valid : 0); }
  std::uint64_t Before(std::uint32_t epoch) const;
  std::uint64_t all() const { return Before(epochs); }
};

/// The sequence of seed vertices of a job. Every epoch lists the training vertices and then, in
/// some epochs (see `valid_every`), the validation vertices. Validation minibatches have a fixed
/// order and fixed neighbours, so that results of different epochs are comparable. The sequence
/// depends only on the constructor's arguments.
class EpochPlan {
 public:
  /// The contents of a minibatch's tag.
  struct Tag {
    std::uint32_t epoch = 0;
    bool is_valid = false;
    std::uint64_t batch = 0;  ///< index within its part of the epoch, over all ranks
  };

  /// Maximum number of epochs that a tag can encode.
  static constexpr std::uint32_t kMaxEpochs = std::uint32_t{1} << 23;

  EpochPlan(std::vector<VertexId> train, std::vector<VertexId> valid,
            const EpochPlanOptions& options);

  /// Returns the next minibatch, or nullopt after the last epoch.
  std::optional<SeedBatch> Next();

  /// Skips the next `minibatches` minibatches, to resume training. Shuffles at most once.
  void Skip(std::uint64_t minibatches);

  static Tag Decode(std::uint64_t tag);
  static std::uint64_t Encode(const Tag& tag);

  /// Returns whether every rank has vertices in every round.
  bool IsEven() const;

  /// Number of training and validation minibatches per epoch, and of all minibatches; all for this
  /// rank only.
  std::uint64_t train_batches() const;
  std::uint64_t valid_batches() const { return Batches(valid_.size()); }
  std::uint64_t minibatches() const { return counts().all(); }

  /// Returns the step counts of this plan.
  EpochCounts counts() const {
    return {options_.epochs, options_.valid_every, train_batches(), valid_batches()};
  }

  /// Returns the number of minibatches before `epoch`; all of them if `epoch` is past the last.
  std::uint64_t Before(std::uint32_t epoch) const { return counts().Before(epoch); }

 private:
  std::uint64_t Batches(std::size_t vertices) const {
    return (vertices + options_.batch_size - 1) / options_.batch_size;
  }
  std::uint64_t Rounds() const;
  std::pair<std::uint64_t, std::uint64_t> TrainRange(std::uint64_t round) const;
  std::uint64_t BatchesOf(std::uint32_t epoch) const { return counts().Of(epoch); }
  void Shuffle();
  SeedBatch TakeTrain() const;
  SeedBatch TakeValid() const;

  const std::vector<VertexId> train_;
  const std::vector<VertexId> valid_;
  const EpochPlanOptions options_;

  std::vector<VertexId> shuffled_;  // train_ in this epoch's order; empty: unshuffled
  std::uint32_t epoch_ = 0;
  std::uint64_t batch_ = 0;  // within the epoch; training comes before validation
};

}  // namespace internal
}  // namespace rhizome
