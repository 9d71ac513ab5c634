#pragma once

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/verify.h"

namespace RHIZOME_API rhizome {

/// Verifies a store. Reads every byte and compares it with what was committed (VerifyFiles,
/// rhizome/verify.h); then, if nothing was found, checks the properties that need the whole graph
/// (VerifyGraph). It continues after damage, so that the list is complete. A file is damaged if it
/// is missing or its bytes are wrong; a file that could not be read is listed as unread. A writer
/// may be active concurrently; its uncommitted files are ignored.
/// Memory: about 1 GiB of topology, or the largest partition, and the memory of VerifyGraph.
/// Errors: kNotFound, no store; kInterrupted; kBusy, a writer keeps cleaning up; kUnsupported, a
/// newer format; kIoError, kPermissionDenied, kOutOfMemory: FORMAT or the catalogue, without which
/// nothing can be checked, could not be read.
Result<VerifyReport> VerifyStore(FileSystem& fs, const Path& store, const JobControl& control);

}  // namespace rhizome
