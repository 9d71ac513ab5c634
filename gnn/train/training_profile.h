#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/cache/memory_plan.h"
#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/cache/policies.h"
#include "rhizome/cache/policy.h"
#include "rhizome/gnn/model_shape.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/read_cost.h"

namespace rhizome {

/// How a training draws.
MinibatchSamplerOptions SamplerOptionsOf(const TrainOptions& options);

/// Minibatches that are in memory at once: in the loader, and computed on.
std::uint64_t MinibatchesAlive();

/// What a training is like, learnt from its first minibatches before it begins: how much memory it
/// needs, and what superbatches of a size would read, by a replay.
/// Threads: one at a time.
class TrainingProfile {
 public:
  struct Job {
    const GraphSnapshot& graph;
    const ArrayEntry& features;
    const ModelShape& shape;
    const TrainOptions& options;
    std::shared_ptr<const NeighborSource> neighbors;  ///< nullptr: the graph, in memory
    std::uint64_t base_bytes = 0;                     ///< what the process took before the job
  };

  /// Samples the first minibatch of `plan`, and more for as long as kProfileSeconds if superbatches
  /// are to be tried. Errors: those of sampling, and of reading `features` to time the disk;
  /// kInterrupted.
  static Result<TrainingProfile> Measure(const Job& job, EpochPlan plan, const JobControl& control);

  const MemoryNeeds& needs() const { return needs_; }

  /// Of superbatches up to half of what was sampled; keeps what was tried. Refers to this. What
  /// fails takes for ever, and trial_status() says why.
  SuperbatchTrial trial();
  const Status& trial_status() const { return trial_status_; }

  /// What the disk's reads cost, if it was asked.
  const std::optional<ReadCost>& read_cost() const { return read_cost_; }

  /// Reads in flight at most.
  std::uint32_t depth() const { return depth_; }

  /// What was sampled, and what was tried with it.
  TrainProfileReport report() const;

 private:
  TrainingProfile() = default;
  Status SampleMore(const class MinibatchSampler& sampler, EpochPlan& plan, const Job& job,
                    const JobControl& control);
  double ReadSeconds(std::uint32_t superbatch, std::uint64_t cache_bytes);

  MemoryNeeds needs_;
  std::optional<ReadCost> read_cost_;
  std::uint32_t depth_ = IoQueueOptions().depth;
  PolicyOptions policy_;           // all but the frames
  std::uint64_t frame_bytes_ = 1;  // of the pool
  Trace trace_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, double> tried_;
  Status trial_status_;
};

}  // namespace rhizome
