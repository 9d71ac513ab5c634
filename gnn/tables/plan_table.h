#pragma once

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Counts the rows that TrainTable with these options reads and writes, and divides its memory.
/// Trains nothing and writes no files.
/// Errors: as TrainTable.
Result<TablePlan> PlanTable(const TrainOptions& options, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
