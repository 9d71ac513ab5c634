#pragma once

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/verify.h"

namespace RHIZOME_API rhizome {

/// Checks the properties that need the whole graph (counts, permutation, offsets, both sides of
/// every edge, degrees, partition sets, sidecars against rows) and adds findings to `report`.
/// Errors: as VerifyStore.
Status VerifyGraph(FileSystem& fs, const Path& store, const JobControl& control,
                   VerifyReport& report);

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
