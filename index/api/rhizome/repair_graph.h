#pragma once

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/repair.h"

namespace RHIZOME_API rhizome {

/// Repairs a damaged store as far as its own bytes allow. It changes nothing unless two
/// verifications prove the damage and everything could be read. Damaged files are moved to a folder
/// next to the store, `STORE.quarantine-<time>`, and never deleted. A rebuilt file must have the
/// committed hash. These are rebuilt: any file with a single wrong byte, the current manifest,
/// metadata and checksums of arrays, FORMAT, PIN, the catalogue, and order, ids and topology as far
/// as their other direction or other partitions allow. If the catalogue does not reveal what was
/// committed, the newest intact manifest becomes current, and the delta is lost. An array that lost
/// rows is dropped, or kept with holes (RepairOptions::fill_holes). Data that cannot be repaired is
/// listed as lost. After a crash the repair can be run again.
/// Threads: holds the writer's lock until the last change.
/// Memory: the largest damaged file twice, the largest partition several times, 16 bytes a vertex.
/// Errors: kNotFound; kBusy; kUnsupported; kIoError, kPermissionDenied, kOutOfSpace, kOutOfMemory;
/// kInterrupted.
Result<RepairReport> RepairGraph(FileSystem& fs, const Path& store, RepairOptions options,
                                 const JobControl& control);

}  // namespace rhizome
