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

/// Returns how a training samples.
MinibatchSamplerOptions SamplerOptionsOf(const TrainOptions& options);

/// Returns the number of minibatches in memory at once: those in the loader, and the one in use.
std::uint64_t MinibatchesAlive();

/// Profiles a training from its first minibatches before it begins: how much memory it needs, and,
/// by a replay, what superbatches of a given length would read.
/// Threads: one at a time.
class TrainingProfile {
 public:
  struct Job {
    const GraphSnapshot& graph;
    const ArrayEntry& features;
    const ModelShape& shape;
    const TrainOptions& options;
    std::shared_ptr<const NeighborSource> neighbors;  ///< null: the graph, in memory
    std::uint64_t base_bytes = 0;                     ///< memory of the process before the job
  };

  /// Samples the first minibatch of `plan`, and more for up to kProfileSeconds if superbatches are
  /// to be tried. Errors: those of sampling, and of reading `features` to time the disk;
  /// kInterrupted.
  static Result<TrainingProfile> Measure(const Job& job, EpochPlan plan, const JobControl& control);

  const MemoryNeeds& needs() const { return needs_; }

  /// Returns a trial of superbatches up to half of what was sampled. It remembers its results and
  /// refers to this object.
  SuperbatchTrial trial();

  /// The cost of the disk's reads, if it was measured.
  const std::optional<ReadCost>& read_cost() const { return read_cost_; }

  /// Limit of reads in flight.
  std::uint32_t depth() const { return depth_; }

  /// Returns what was sampled, and what was tried with it.
  TrainProfileReport report() const;

 private:
  TrainingProfile() = default;
  Status SampleMore(const class MinibatchSampler& sampler, EpochPlan& plan, const Job& job,
                    const JobControl& control);
  double ReadSeconds(std::uint32_t superbatch, std::uint64_t cache_bytes);

  MemoryNeeds needs_;
  std::optional<ReadCost> read_cost_;
  std::uint32_t depth_ = IoQueueOptions().depth;
  PolicyOptions policy_;           // without frame_count
  std::uint64_t frame_bytes_ = 1;  // bytes of a frame in the pool
  Trace trace_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, double> tried_;
};

}  // namespace rhizome
