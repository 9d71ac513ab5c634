#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "rhizome/cache/minibatch_sampler.h"

namespace rhizome {

/// Plans the seed vertices of each minibatch of a training job. Every epoch takes the training
/// vertices in a shuffled order of its own (seeded), then the validation vertices in one fixed
/// order with fixed neighbours, so that all epochs are measured alike. Depends on its arguments
/// only. An epoch trains on at most its first `most_train_batches` minibatches (0: all).
class EpochPlan {
 public:
  /// The contents of a minibatch's tag.
  struct Tag {
    std::uint32_t epoch = 0;
    bool is_valid = false;
    std::uint64_t batch = 0;  ///< within its part of the epoch
  };

  EpochPlan(std::vector<VertexId> train, std::vector<VertexId> valid, std::uint64_t batch_size,
            std::uint32_t epochs, std::uint64_t seed, std::uint64_t most_train_batches = 0);

  /// Returns the next minibatch, or nothing after the last epoch.
  std::optional<SeedBatch> Next();

  /// Skips the next `minibatches`, to resume a training. Shuffles once.
  void Skip(std::uint64_t minibatches);

  static Tag Decode(std::uint64_t tag);

  std::uint64_t train_batches() const { return std::min(Batches(train_.size()), most_train_); }
  std::uint64_t valid_batches() const { return Batches(valid_.size()); }

 private:
  std::uint64_t Batches(std::size_t vertices) const {
    return (vertices + batch_size_ - 1) / batch_size_;
  }
  void Shuffle();
  SeedBatch Take(const std::vector<VertexId>& from, bool is_valid) const;

  const std::vector<VertexId> train_;
  const std::vector<VertexId> valid_;
  const std::uint64_t batch_size_;
  const std::uint32_t epochs_;
  const std::uint64_t seed_;
  const std::uint64_t most_train_;

  std::vector<VertexId> shuffled_;  // train_, in the current epoch's order
  std::uint32_t epoch_ = 0;
  std::uint64_t batch_ = 0;  // within the epoch; training comes before validation
};

}  // namespace rhizome
