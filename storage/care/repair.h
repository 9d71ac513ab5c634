#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store_id.h"
#include "rhizome/storage/verify.h"

namespace RHIZOME_API rhizome {

/// Something that repair did, or could not do, with a file or an array.
struct RepairNote {
  std::string what;  ///< a file, relative to the store, or an array ("array 'emb'")
  std::string how;
};

/// Derives files that only a graph understands (see RepairGraph, index/repair_graph.h).
class FileDeriver {
 public:
  virtual ~FileDeriver() = default;

  /// A generation, some of whose files are damaged.
  struct Source {
    FileSystem& fs;
    Path folder;
    StoreId id;
    const Manifest& manifest;
  };
  struct Derived {
    std::vector<std::byte> bytes;
    std::string from;  ///< for people: "its other direction"
  };

  /// What a damaged file must have been, from what is left of it (of the length that the manifest
  /// says) and from the other files; nothing if they do not tell. The caller compares hashes.
  /// Errors: kInterrupted; a file that could not be read, which proves no damage.
  virtual Result<std::optional<Derived>> Derive(const Source& source, const FileEntry& file,
                                                std::vector<std::byte> left) = 0;
};

struct RepairOptions {
  /// What to do with an array of which rows are lost: drop it, or keep it with zeros in the lost
  /// rows (FillMissingRows, array_rules.h), which its attribute "lost_rows" lists.
  bool fill_holes = false;
  bool dry_run = false;  ///< only say what would be done
  FileDeriver* deriver = nullptr;
};

struct RepairReport {
  std::vector<Damage> found;            ///< by VerifyFiles, beforehand
  std::vector<RepairNote> rebuilt;      ///< files that are again what was committed
  std::vector<RepairNote> quarantined;  ///< files that were moved out of the store; `how`: where to
  std::vector<RepairNote> lost;         ///< what is gone, and what can be done about it
  std::string quarantine;               ///< the folder beside the store; empty if none was needed
  VerifyReport after;                   ///< VerifyFiles, afterwards
};

/// Makes a damaged store as whole as its own bytes allow. Nothing is changed unless bytes that were
/// read, or names that are not there, prove the damage at two looks, and unless everything could be
/// read: a shortage or a fault of the device is an error. Damaged files are moved to a folder
/// beside the store, `STORE.quarantine-<time>`, never deleted; while earlier ones are there, what
/// is missing or worse by now is also sought in them. What can be derived is rebuilt, and compared
/// with the hash that was committed before it is put in place:
///   - any file of which one byte is wrong: the CRC-32C tells which;
///   - the current manifest, from the files that it lists and what is left of it;
///   - the preamble, checksums and footer of a section file, also where they were cut off;
///   - FORMAT from a manifest, PIN, metadata of arrays from the manifest, row checksums from rows
///     whose chunk is sound;
///   - whatever the deriver knows of order, ids and topology.
/// The catalogue is RocksDB's to repair; what is left of it is checked record by record and goes
/// into a new one. If it does not tell what was committed, the newest sound manifest does, and the
/// delta is lost. An array that lost rows is dropped (all of its files go to quarantine) or kept
/// with holes: of layout row the rows whose checksums do not hold, else those of inner chunks or
/// chunks. What cannot be helped is listed as lost. A crash leaves a store that can be repaired
/// again. Holds the writer's lock until the last change. Memory: the damaged file twice, and the
/// deriver's. Errors: kNotFound; kBusy; kUnsupported; kIoError, kPermissionDenied, kOutOfSpace,
/// kOutOfMemory; kInterrupted.
Result<RepairReport> RepairStore(FileSystem& fs, const Path& store, const RepairOptions& options,
                                 const JobControl& control);

}  // namespace rhizome
