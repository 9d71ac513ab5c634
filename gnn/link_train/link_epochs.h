#pragma once

#include <cstdint>
#include <optional>

#include "cache/feed/minibatch_sampler.h"
#include "gnn/link_train/link_job.h"
#include "gnn/train/train.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The minibatches of a training on links, in the order of LinkBatches. The seeds of a minibatch
/// are the ends of its edges and the negatives. Some epochs end with the edges of the validation
/// set, with the candidates as negatives.
/// Threads: one at a time. Ownership: `job` must outlive it.
class LinkEpochs {
 public:
  /// `counts`: as CountsOf. The first minibatch is number `done` over all epochs.
  LinkEpochs(const LinkJob& job, const EpochCounts& counts, std::uint64_t batch_size,
             std::uint64_t done);

  /// Returns the next minibatch; nullopt after the last. Errors: as LinkBatches::Make.
  Result<std::optional<SeedBatch>> Next();

  /// Returns the number of steps of an epoch, from the options.
  static EpochCounts CountsOf(const LinkJob& job, const TrainOptions& options);

 private:
  Result<SeedBatch> Train();
  SeedBatch Valid() const;

  const LinkJob& job_;
  const EpochCounts counts_;
  const std::uint64_t batch_size_;
  std::uint32_t epoch_ = 0;
  std::uint64_t batch_ = 0;  // within the epoch
  LinkBatch links_;
};

/// Returns the minibatches of a training.
TrainingSeeds LinkTrainingSeeds(const LinkJob& job, const TrainOptions& options);

}  // namespace internal
}  // namespace rhizome
