#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/gnn/learner.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Where a training run is, apart from what it has learnt.
struct TrainProgress {
  std::uint64_t done = 0;           ///< minibatches, of all epochs
  std::vector<EpochReport> epochs;  ///< those that are complete
  EpochReport current;              ///< of the one that runs
  BatchOutcome train, valid;        ///< of the one that runs
  std::uint32_t best_epoch = 0;     ///< 1-based; 0: none yet
  double best_accuracy = 0;         ///< on the validation set
  double best_loss = 0;             ///< there
};

/// All that a run needs to go on as if it had never stopped: the same bits with one thread.
struct Checkpoint {
  TrainProgress progress;
  std::vector<torch::Tensor> weights;       ///< Model::CopyWeights
  std::vector<torch::Tensor> best_weights;  ///< empty: no epoch is complete
  LearnerState learner;
};

/// Writes a checkpoint as safetensors with a checksum over all of it; one that is there is replaced
/// at once or not at all. `job` says all that the result depends on. Errors: kIoError, kOutOfSpace.
Status SaveCheckpoint(const Path& path, const std::string& job, const Checkpoint& checkpoint);

/// The checkpoint at `path`; nothing if there is none. Errors: kInvalidArgument, it is of a run
/// with another description; kCorruption, naming the file.
Result<std::optional<Checkpoint>> LoadCheckpoint(FileSystem& fs, const Path& path,
                                                 const std::string& job);

}  // namespace rhizome::inline internal
