#pragma once

#include <cstdint>

#include "gnn/full_graph/full_job.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Estimates how long the passes of an epoch take, and sets their seconds in `report`, the report
/// of `full`. Multiplies counted work by rates that short trials measure: a tile of each pass, the
/// aggregation of random rows of a window, copies of rows, and, if the plan moves any bytes, chunks
/// that are written to `folder` and read back. The trial creates `folder` and removes it. If the
/// trial of the disk fails, moving takes no time, and report.disk_problem names the reason. Disk
/// and processor work concurrently, so a pass takes the longer of both times. Overwrites the
/// gradients of the model's weights. `threads`: number of compute threads. `measured`: whether
/// epochs include an evaluation step. Errors: kInterrupted; errors of removing the folder.
Status EstimateTimes(FullJob& full, const Path& folder, std::uint32_t threads, bool measured,
                     FullGraphReport& report, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
