#pragma once

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/verify.h"

namespace RHIZOME_API rhizome {

/// Runs VerifyFiles, and then, if it found nothing, VerifyGraph (rhizome/graph.h). The files of the
/// graph are read only once for both, and their structure is checked while other files are being
/// read.
/// Memory: the memory of both, and about 1 GiB of topology, or the largest partition.
/// Errors: as VerifyFiles.
Result<VerifyReport> VerifyStore(FileSystem& fs, const Path& store, const JobControl& control);

}  // namespace rhizome
