#pragma once

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/verify.h"

namespace RHIZOME_API rhizome {

/// VerifyFiles, then, if nothing was found, VerifyGraph (index/graph.h); but the files of the graph
/// are read once for both, and their structure is checked while the rest is being read. Memory: as
/// both, and about 1 GiB of topology, or the largest partition. Errors: those of VerifyFiles.
Result<VerifyReport> VerifyStore(FileSystem& fs, const Path& store, const JobControl& control);

}  // namespace rhizome
