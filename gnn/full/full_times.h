#pragma once

#include <cstdint>

#include "rhizome/gnn/full_job.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// Guesses how long the passes of an epoch take, and sets their seconds in `report`, that of
/// `full`. What is counted is multiplied by rates that short trials show: a tile of each pass, the
/// gathering of random rows of a window, copies of rows, and, if the plan moves anything, chunks
/// that are written to `folder`, which is made for it and removed, and read back; where that fails,
/// moving takes no time and `report` says why. Disk and processor work at once, so that a pass
/// takes the longer of both. The weights of the model have other gradients afterwards. `threads`:
/// that compute. Errors: kInterrupted; those of removing the folder.
Status GuessTimes(FullJob& full, const Path& folder, std::uint32_t threads, bool measured,
                  FullGraphReport& report, const JobControl& control);

}  // namespace rhizome::inline internal
