#pragma once

#include <memory>
#include <vector>

#include "cache/feed/lists_on_disk.h"
#include "gnn/passes/graph_pass.h"
#include "gnn/train/train_job.h"
#include "rhizome/job_control.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// The factors of a reduction, [rows] each. See GatherFactors for the meaning of an empty vector.
struct RowFactors {
  std::vector<float> source, target, own;
};

/// The neighbour lists of the forward pass and their reverse, with the factors of their rows.
struct FullLists {
  GatherSide forward, backward;
  RowFactors factors;
  std::unique_ptr<ListsOnDisk> lists, other_lists;  ///< null: in memory
};

/// Opens the lists of both directions, and computes their degrees and factors. Ownership: `job`
/// must outlive the result. Errors: kInvalidArgument, the store lacks the lists of one direction;
/// errors of reading lists.
Result<std::unique_ptr<FullLists>> OpenFullSides(const TrainJob& job, const TrainOptions& options,
                                                 const JobControl& control);

}  // namespace internal
}  // namespace rhizome
