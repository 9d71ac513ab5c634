#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct EpochPlanOptions {
  std::uint64_t batch_size = 1;
  std::uint32_t epochs = 1;  ///< at most kMostEpochs
  std::uint64_t seed = 1;    ///< of the orders

  /// Each epoch has its own order of the training vertices; else they come as they are given.
  /// Either way each epoch draws its own neighbours.
  bool shuffle = true;
  bool drop_last = false;  ///< no training minibatch below batch_size

  /// The training vertices are divided among `ranks` plans alike but for `rank`: round i holds
  /// minibatch i of each, in turn. What is left after whole rounds is divided evenly, together with
  /// the round before if it has fewer vertices than there are ranks (or is left out).
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;

  std::uint64_t most_train_batches = 0;  ///< of an epoch; 0: all

  /// Every so many epochs, at least 1, and after the last one, the validation vertices follow.
  std::uint32_t valid_every = 1;
};

/// The numbers of the steps of a training: in every epoch those that learn, then in some of them
/// those that measure the validation set.
struct EpochCounts {
  std::uint32_t epochs = 1;
  std::uint32_t valid_every = 1;  ///< as EpochPlanOptions
  std::uint64_t train = 0;        ///< of an epoch
  std::uint64_t valid = 0;        ///< likewise; 0: there is no validation set

  /// Whether the validation steps follow in an epoch, counted from 0.
  bool HasValid(std::uint32_t epoch) const;

  /// The steps of an epoch, those before it (of one after the last: all), and all.
  std::uint64_t Of(std::uint32_t epoch) const { return train + (HasValid(epoch) ? valid : 0); }
  std::uint64_t Before(std::uint32_t epoch) const;
  std::uint64_t all() const { return Before(epochs); }
};

/// Which vertices each minibatch of a job holds: in every epoch the training vertices, then (see
/// `valid_every`) the validation vertices in one fixed order with fixed neighbours, so that epochs
/// are measured alike. Depends on its arguments only.
class EpochPlan {
 public:
  /// The contents of a minibatch's tag.
  struct Tag {
    std::uint32_t epoch = 0;
    bool is_valid = false;
    std::uint64_t batch = 0;  ///< within its part of the epoch, of all ranks
  };

  /// The most epochs that tags can number.
  static constexpr std::uint32_t kMostEpochs = std::uint32_t{1} << 23;

  EpochPlan(std::vector<VertexId> train, std::vector<VertexId> valid,
            const EpochPlanOptions& options);

  /// Returns the next minibatch, or nothing after the last epoch.
  std::optional<SeedBatch> Next();

  /// Skips the next `minibatches`, to resume a training. Shuffles once.
  void Skip(std::uint64_t minibatches);

  static Tag Decode(std::uint64_t tag);
  static std::uint64_t Encode(const Tag& tag);

  /// Whether each rank has vertices in every round.
  bool IsEven() const;

  /// Minibatches of an epoch's two parts, and of all; of this rank.
  std::uint64_t train_batches() const;
  std::uint64_t valid_batches() const { return Batches(valid_.size()); }
  std::uint64_t minibatches() const { return counts().all(); }

  /// Its minibatches as steps.
  EpochCounts counts() const {
    return {options_.epochs, options_.valid_every, train_batches(), valid_batches()};
  }

  /// The minibatches before an epoch; of one after the last: all.
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

  std::vector<VertexId> shuffled_;  // train_, in the current epoch's order; empty: as it is
  std::uint32_t epoch_ = 0;
  std::uint64_t batch_ = 0;  // within the epoch; training comes before validation
};

}  // namespace internal
}  // namespace rhizome
