#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/gnn/full_network.h"
#include "rhizome/gnn/graph_pass.h"
#include "rhizome/gnn/train_job.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// The factors of a reduction, for every row; GatherFactors has what an empty one means.
struct RowFactors {
  std::vector<float> source, target, own;
};

/// A training on the full graph, ready to run: its sources, its arrays, and how its passes are cut.
/// Threads: one at a time.
/// Ownership: borrows `job`, whose graph, labels and model it works on, and `options`.
class FullJob {
 public:
  /// Divides the memory beside `held_bytes`, and chooses what stays in it. `folder`: of the arrays,
  /// which is made by Prepare. Errors: kInvalidArgument, see CheckFullGraph, or the store lacks the
  /// lists of one side; kOutOfMemory, naming the least that is needed and the pass that needs it;
  /// those of reading lists.
  static Result<std::unique_ptr<FullJob>> Open(const TrainJob& job, const TrainOptions& options,
                                               const Path& folder, std::uint64_t held_bytes,
                                               const JobControl& control);

  /// Makes the folder. Errors: kOutOfSpace, its disk has no room for the arrays; those of the
  /// FileSystem.
  Status Prepare();

  FullNetwork& network() { return *network_; }
  ScratchBytes moved() const { return space_->moved(); }
  const FullGraphReport& plan() const { return plan_; }

  /// Runs a pass.
  Result<TileSums> Run(const GraphPass& pass, const std::string& phase,
                       const JobControl& control) const {
    return RunPass(pass, *ground_, phase, control);
  }

 private:
  FullJob(const TrainJob& job, const TrainOptions& options) : job_(job), options_(options) {}
  Status OpenFeatures();
  Status OpenSides(const JobControl& control);
  Status Divide(std::uint64_t held_bytes, const JobControl& control);
  void Arrange(const PassSizes& sizes, std::uint64_t eighths);
  struct Need;
  Need Needed();
  Status Count(const JobControl& control);
  Status ForPasses(const std::function<Status(const GraphPass&, bool measures)>& use);

  const TrainJob& job_;
  const TrainOptions& options_;
  std::unique_ptr<TaskLoss> loss_;
  SetWeights weights_;
  std::unique_ptr<ChunkArray> features_array_;
  std::unique_ptr<FeatureSource> features_;
  std::unique_ptr<ListsOnDisk> lists_, other_lists_;  // null: in memory
  RowFactors factors_;
  GatherSide forward_, backward_;
  std::unique_ptr<ScratchSpace> space_;
  std::unique_ptr<PassGround> ground_;
  FullArrays arrays_;
  std::unique_ptr<FullNetwork> network_;
  FullGraphReport plan_;
};

}  // namespace rhizome::inline internal
