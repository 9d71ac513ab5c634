#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gnn/train/learner.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Progress of a training run, without its weights and optimiser state.
struct TrainProgress {
  std::uint64_t done = 0;           ///< minibatches completed, over all epochs
  std::vector<EpochReport> epochs;  ///< the complete epochs
  EpochReport current;              ///< the epoch in progress
  BatchOutcome train, valid;        ///< sums over the epoch in progress
  std::uint32_t best_epoch = 0;     ///< 1-based; 0: none yet
  double best_value = 0;            ///< of the monitored metric, on the validation set
  double best_loss = 0;             ///< on the validation set
};

/// Everything that a run needs to continue as if it had not stopped; with one thread, bit for bit.
struct Checkpoint {
  /// Set by LoadCheckpoint: an older version wrote the checkpoint, and recorded the numbers of the
  /// store's state only, not its hashes (CompareJobs).
  bool by_numbers = false;

  TrainProgress progress;
  std::vector<torch::Tensor> weights;       ///< Model::CopyWeights
  std::vector<torch::Tensor> best_weights;  ///< empty: no epoch is complete yet
  LearnerState learner;

  /// The ScoreTables' kept scores of the epoch in progress: of the validation set while it is being
  /// measured, and of the training set if its metrics are requested (TrainOptions). Otherwise, and
  /// in checkpoints of older versions, undefined.
  torch::Tensor valid_scores, train_scores;
};

/// Writes a checkpoint as safetensors with a checksum over the whole file, and replaces an existing
/// one atomically. `job` describes everything that the result depends on. Errors: kIoError;
/// kOutOfSpace.
Status SaveCheckpoint(const Path& path, const std::string& job, const Checkpoint& checkpoint);

/// Encodes the same file, and decodes it; `place` names it in messages. Errors: as LoadCheckpoint.
std::vector<std::byte> EncodeCheckpoint(const std::string& job, const Checkpoint& checkpoint);
Result<Checkpoint> DecodeCheckpoint(std::span<const std::byte> bytes, const std::string& place,
                                    const std::string& job);

/// Loads the checkpoint at `path`; nullopt if there is none. Errors: kInvalidArgument, it belongs
/// to a run with another description; kCorruption, naming the file.
Result<std::optional<Checkpoint>> LoadCheckpoint(FileSystem& fs, const Path& path,
                                                 const std::string& job);

}  // namespace internal
}  // namespace rhizome
