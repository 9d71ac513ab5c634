#pragma once

#include <memory>
#include <vector>

#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/gnn/graph_pass.h"
#include "rhizome/gnn/train_job.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// The factors of a reduction, [rows] each. See GatherFactors for the meaning of an empty vector.
struct RowFactors {
  std::vector<float> source, target, own;
};

/// The neighbour lists of the forward pass and their reverse, with the factors of their rows.
struct FullSides {
  GatherSide forward, backward;
  RowFactors factors;
  std::unique_ptr<ListsOnDisk> lists, other_lists;  ///< null: in memory
};

/// Opens the lists of both directions, and computes their degrees and factors. Ownership: `job`
/// must outlive the result. Errors: kInvalidArgument, the store lacks the lists of one direction;
/// errors of reading lists.
Result<std::unique_ptr<FullSides>> OpenFullSides(const TrainJob& job, const TrainOptions& options,
                                                 const JobControl& control);

}  // namespace rhizome::inline internal
