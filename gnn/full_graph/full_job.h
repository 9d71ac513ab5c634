#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gnn/full_graph/full_lists.h"
#include "gnn/full_graph/full_network.h"
#include "gnn/full_graph/step_plan.h"
#include "gnn/full_graph/step_state.h"
#include "gnn/passes/graph_pass.h"
#include "gnn/train/train_job.h"
#include "rhizome/job_control.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// A full-graph training that is ready to run: its inputs, its scratch arrays, and the plans of its
/// steps.
/// Threads: one at a time.
/// Ownership: borrows `options` and `job`, whose graph, labels and model it works on.
class FullJob {
 public:
  /// Opens the inputs, divides the memory limit, and plans which chunks stay in memory. A caller
  /// that asks only for a plan gets the plan of a training with the same options, because the
  /// memory that the job holds is computed and not measured (HeldByJob).
  /// `folder`: of the scratch arrays; Prepare creates it. `from`: an interrupted step to resume,
  /// whose chunk size and choice of stored sums the plan adopts; null: none.
  /// Errors: kInvalidArgument, see CheckFullGraph, or the store lacks the lists of one direction;
  /// kOutOfMemory, naming the minimum memory and the pass that needs it; errors of reading lists.
  static Result<std::unique_ptr<FullJob>> Open(const TrainJob& job, const TrainOptions& options,
                                               const Path& folder, const StepState* from,
                                               const JobControl& control);

  /// Creates the folder. Keeps the files of the state `from`, if it is not null, and removes all
  /// others. Errors: kOutOfSpace, the disk has too little free space for the arrays; errors of the
  /// FileSystem.
  Status Prepare(const StepState* from);

  FullNetwork& network() { return *network_; }
  const PassContext& ground() const { return *ground_; }
  ScratchSpace& space() const { return *space_; }
  ScratchMoved moved() const { return space_->moved(); }
  /// Returns the bytes of the features' files that passes have read so far.
  std::uint64_t feature_bytes_read() const { return feature_bytes_read_; }
  const FullGraphReport& report() const { return report_; }
  std::uint64_t held_bytes() const { return held_bytes_; }  ///< memory held before the first pass

  /// Returns the plan of an evaluation step if `measures`, else of a training step.
  const FullStepPlan& StepOf(bool measures) const { return measures ? *measure_ : *learn_; }

  /// Returns the scratch arrays, indexed by id.
  std::vector<ScratchArray*> Arrays() const;

 private:
  FullJob(const TrainJob& job, const TrainOptions& options) : job_(job), options_(options) {}
  Status OpenFeatures();
  /// Memory that does not depend on passes, except for the memory that HeldByJob counts.
  struct Fixed {
    std::uint64_t process = 0;  // libtorch and the allocator, for any graph
    std::uint64_t graph = 0;    // numbers and scores per vertex; buffers of lists on disk
    std::uint64_t model = 0;    // copies of the weights
    std::uint64_t all() const { return process + graph + model; }
  };
  Fixed FixedBytes() const;
  Status TooSmall(std::uint64_t limit_bytes, std::string_view pass, std::uint64_t pass_bytes) const;
  /// The plans of both steps for one chunk size, and everything that depends on that size.
  struct Divided {
    PassSizes sizes;
    FullArrays arrays;
    std::unique_ptr<FullNetwork> network;  // borrows `arrays`
    std::unique_ptr<FullStepPlan> learn, measure;
    FullGraphReport report;
  };

  Status Divide(const StepState* from, const JobControl& control);
  PassSizes SizesFor(std::uint64_t bytes, const StepState* from) const;
  bool Pays(const std::optional<Divided>& best) const;
  void Arrange(const PassSizes& sizes);
  Divided TakeDivided();
  void Use(Divided divided);
  Status Record(StepPlanner& learn, StepPlanner& measure);
  Status Plan(std::uint64_t capacity_bytes, const StepState* from, const JobControl& control);
  void SetRecomputed();

  const TrainJob& job_;
  const TrainOptions& options_;
  std::unique_ptr<TaskLoss> loss_;
  SetWeights weights_;
  std::unique_ptr<ChunkArray> features_array_;
  std::atomic<std::uint64_t> feature_bytes_read_ = 0;
  std::unique_ptr<FeatureSource> features_;
  std::unique_ptr<FullLists> sides_;
  std::uint64_t held_bytes_ = 0;
  std::unique_ptr<ScratchSpace> space_;
  std::unique_ptr<PassContext> ground_;
  FullArrays arrays_;
  std::unique_ptr<FullNetwork> network_;
  std::unique_ptr<FullStepPlan> learn_, measure_;
  FullGraphReport report_;
};

}  // namespace internal
}  // namespace rhizome
