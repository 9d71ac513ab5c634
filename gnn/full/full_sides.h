#pragma once

#include <memory>
#include <vector>

#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/gnn/graph_pass.h"
#include "rhizome/gnn/train_job.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// The factors of a reduction, for every row; GatherFactors has what an empty one means.
struct RowFactors {
  std::vector<float> source, target, own;
};

/// The lists that layers walk, and those of the other side, with the factors of their rows.
struct FullSides {
  GatherSide forward, backward;
  RowFactors factors;
  std::unique_ptr<ListsOnDisk> lists, other_lists;  ///< null: in memory
};

/// Opens both sides, and counts them. Ownership: `job` must outlive them. Errors: kInvalidArgument,
/// the store lacks the lists of one side; those of reading lists.
Result<std::unique_ptr<FullSides>> OpenFullSides(const TrainJob& job, const TrainOptions& options,
                                                 const JobControl& control);

}  // namespace rhizome::inline internal
