#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/result.h"
#include "rhizome/store_id.h"
#include "rhizome/verify.h"

namespace RHIZOME_API rhizome {

/// A note on what repair did, or could not do, with a file or an array.
struct RepairNote {
  std::string what;  ///< a file, relative to the store, or an array ("array 'emb'")
  std::string how;   ///< in words
};

/// Derives files that only a graph understands (RepairGraph, rhizome/repair_graph.h).
/// Threads: one at a time.
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
    std::string from;  ///< for users: "its other direction"
  };

  /// Derives the original bytes of a damaged file from `left`, its remaining bytes, and from the
  /// other files. `left` has the length stated in the manifest; it is empty if the file must be
  /// derived from the others only. Returns nullopt if they do not suffice. The caller compares
  /// hashes. Errors: kInterrupted; errors of a file that could not be read, which do not prove
  /// damage.
  virtual Result<std::optional<Derived>> Derive(const Source& source, const FileEntry& file,
                                                std::vector<std::byte> left) = 0;
};

struct RepairOptions {
  /// If false, an array that lost rows is dropped. If true, it is kept with the values of
  /// FillMissingRows (array_facts.h) in the lost rows, which its attribute "lost_rows" lists.
  bool fill_holes = false;
  bool dry_run = false;            ///< change nothing, and report what would be done
  FileDeriver* deriver = nullptr;  ///< borrowed; nullptr: files that need it are lost
};

struct RepairReport {
  std::vector<Damage> found;            ///< by VerifyFiles, before the repair
  std::vector<RepairNote> rebuilt;      ///< files that have their committed content again
  std::vector<RepairNote> quarantined;  ///< files moved out of the store; `how` is the new path
  std::vector<RepairNote> lost;         ///< lost data, with advice
  std::string quarantine;               ///< the folder next to the store; empty if none was needed
  VerifyReport after;                   ///< by VerifyFiles, after the repair
};

/// Repairs a damaged store as far as its own bytes allow. It changes nothing unless two
/// verifications prove the damage, by bytes that were read or files that are missing, and unless
/// everything could be read: a shortage of resources or a device error is an error. Damaged files
/// are moved to a folder next to the store, `STORE.quarantine-<time>`, and never deleted; bytes of
/// a damaged file are also searched in the folders of earlier repairs. These files are rebuilt, and
/// compared with the committed hash before they are put in place:
///   - any file with a single wrong byte, which is located by the CRC-32C;
///   - the current manifest, from the files that it lists and its remaining bytes;
///   - the preamble, checksums and footer of a section file, even if they were cut off;
///   - FORMAT from a manifest, PIN, metadata of arrays from the manifest, row checksums from rows
///     whose chunk is intact;
///   - order, ids and topology, as far as the deriver can.
/// RocksDB repairs the catalogue; the result is checked record by record and copied into a new
/// catalogue. If it does not reveal what was committed, the newest intact manifest becomes current,
/// and the delta is lost. An array that lost rows is dropped, and all of its files go to
/// quarantine, or it is kept with holes: in layout kRow the rows that do not match their checksums,
/// otherwise the rows of damaged inner chunks or chunks. Data that cannot be repaired is listed as
/// lost. After a crash the repair can be run again. The writer's lock is held until the last
/// change. Memory: twice the damaged file, plus the deriver's. Errors: kNotFound; kBusy;
/// kUnsupported; kIoError, kPermissionDenied, kOutOfSpace, kOutOfMemory; kInterrupted.
Result<RepairReport> RepairStore(FileSystem& fs, const Path& store, const RepairOptions& options,
                                 const JobControl& control);

}  // namespace rhizome
