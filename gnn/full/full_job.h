#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/gnn/full_network.h"
#include "rhizome/gnn/full_sides.h"
#include "rhizome/gnn/graph_pass.h"
#include "rhizome/gnn/step_plan.h"
#include "rhizome/gnn/step_state.h"
#include "rhizome/gnn/train_job.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// A training on the full graph, ready to run: its sources, its arrays, and the plan of its steps.
/// Threads: one at a time.
/// Ownership: borrows `job`, whose graph, labels and model it works on, and `options`.
class FullJob {
 public:
  /// Divides the memory beside what is held (HeldByJob), and plans what stays in it: who only asks
  /// for a plan gets the one that a training has. `folder`: of the arrays, which is made by
  /// Prepare. `from`: the state of a step to go on from, whose chunks and stored sums are then
  /// those of the plan; null: none. Errors: kInvalidArgument, see CheckFullGraph, or the store
  /// lacks the lists of one side; kOutOfMemory, naming the least that is needed and the pass that
  /// needs it; those of reading lists.
  static Result<std::unique_ptr<FullJob>> Open(const TrainJob& job, const TrainOptions& options,
                                               const Path& folder, const StepState* from,
                                               const JobControl& control);

  /// Makes the folder, with the files of a state to go on from, if there is one, and no others.
  /// Errors: kOutOfSpace, its disk has no room for the arrays; those of the
  /// FileSystem.
  Status Prepare(const StepState* from);

  FullNetwork& network() { return *network_; }
  const PassGround& ground() const { return *ground_; }
  ScratchSpace& space() const { return *space_; }
  ScratchMoved moved() const { return space_->moved(); }
  std::uint64_t feature_bytes_read() const { return feature_bytes_read_; }  ///< by all passes
  const FullGraphReport& report() const { return report_; }
  std::uint64_t held_bytes() const { return held_bytes_; }  ///< HeldByJob

  /// The plan of a step, to learn or to measure.
  const FullStepPlan& StepOf(bool measures) const { return measures ? *measure_ : *learn_; }

  /// The scratch arrays, by id.
  std::vector<ScratchArray*> Arrays() const;

 private:
  FullJob(const TrainJob& job, const TrainOptions& options) : job_(job), options_(options) {}
  Status OpenFeatures();
  /// Memory that the job takes whatever passes do, but for what HeldByJob counts.
  struct Fixed {
    std::uint64_t process = 0;  // of libtorch and the allocator, whatever the graph is
    std::uint64_t graph = 0;    // for each vertex, with scores; buffers of lists on disk
    std::uint64_t model = 0;    // copies of the weights
    std::uint64_t all() const { return process + graph + model; }
  };
  Fixed FixedBytes() const;
  Status TooSmall(std::uint64_t limit_bytes, std::string_view pass, std::uint64_t pass_bytes) const;
  /// The plans of both steps with chunks of some size, and all that has that size.
  struct Divided {
    PassSizes sizes;
    FullArrays arrays;
    std::unique_ptr<FullNetwork> network;  // works on `arrays`
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
  std::unique_ptr<FullSides> sides_;
  std::uint64_t held_bytes_ = 0;
  std::unique_ptr<ScratchSpace> space_;
  std::unique_ptr<PassGround> ground_;
  FullArrays arrays_;
  std::unique_ptr<FullNetwork> network_;
  std::unique_ptr<FullStepPlan> learn_, measure_;
  FullGraphReport report_;
};

}  // namespace rhizome::inline internal
