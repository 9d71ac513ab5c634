#pragma once

#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/verify.h"

namespace rhizome {

/// Something that repair did, or could not do, with a file or an array.
struct RepairNote {
  std::string what;  ///< a file, relative to the store, or an array ("array 'emb'")
  std::string how;
};

struct RepairOptions {
  /// What to do with an array of which chunks are lost: drop it, or keep it with zeros in the lost
  /// rows, which its attribute "lost_rows" lists.
  bool fill_holes = false;
  bool dry_run = false;  ///< only say what would be done
};

struct RepairReport {
  std::vector<Damage> found;            ///< by VerifyFiles, beforehand
  std::vector<RepairNote> rebuilt;      ///< files that are again what was committed
  std::vector<RepairNote> quarantined;  ///< files that were moved out of the store; `how`: where to
  std::vector<RepairNote> lost;         ///< what is gone, and what can be done about it
  std::string quarantine;               ///< the folder beside the store; empty if none was needed
  VerifyReport after;                   ///< VerifyFiles, afterwards
};

/// Makes a damaged store as whole as its own bytes allow. Damaged files are moved to a folder
/// beside the store, `STORE.quarantine-<time>`, never deleted; what can be derived is rebuilt and
/// compared with the hash that the manifest holds: FORMAT from a manifest, PIN, metadata of arrays
/// from the manifest, row checksums from rows whose chunk is sound. An array that lost chunks is
/// dropped (all of its files go to quarantine) or kept with holes; what cannot be helped (topology,
/// order, ids, the current manifest, the catalogue) is listed as lost. A crash leaves a store that
/// can be repaired again. Holds the writer's lock. Errors: kNotFound; kBusy; kUnsupported;
/// kIoError, kOutOfSpace; kInterrupted.
Result<RepairReport> RepairStore(FileSystem& fs, const Path& store, const RepairOptions& options,
                                 const JobControl& control);

}  // namespace rhizome
