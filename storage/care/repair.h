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

/// A note on something that repair did, or could not do, with a file or an array.
struct RepairNote {
  std::string what;  ///< a file, relative to the store, or an array ("array 'emb'")
  std::string how;   ///< in words
};

/// Derives files that only a graph understands (RepairGraph, index/repair_graph.h). Threads: one at
/// a time.
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

  /// Derives the bytes that a damaged file must have had from `left`, what is left of it, and from
  /// the other files. `left` has the length that the manifest says; it is empty if a file is to be
  /// derived from the others alone. Returns nothing if they do not suffice. The caller compares
  /// hashes. Errors: kInterrupted; those of a file that could not be read, which prove no damage.
  virtual Result<std::optional<Derived>> Derive(const Source& source, const FileEntry& file,
                                                std::vector<std::byte> left) = 0;
};

struct RepairOptions {
  /// An array that lost rows is dropped if false. If true it is kept with the values of
  /// FillMissingRows (array_rules.h) in the lost rows, which its attribute "lost_rows" lists.
  bool fill_holes = false;
  bool dry_run = false;            ///< change nothing, and report what would be done
  FileDeriver* deriver = nullptr;  ///< borrowed; nullptr: files that need it are lost
};

struct RepairReport {
  std::vector<Damage> found;            ///< by VerifyFiles, beforehand
  std::vector<RepairNote> rebuilt;      ///< files that are again what was committed
  std::vector<RepairNote> quarantined;  ///< files moved out of the store; `how` is the new path
  std::vector<RepairNote> lost;         ///< lost data, and advice on it
  std::string quarantine;               ///< the folder beside the store; empty if none was needed
  VerifyReport after;                   ///< by VerifyFiles, afterwards
};

/// Repairs a damaged store as far as its own bytes allow. It changes nothing unless the damage is
/// proven, by bytes that were read or files that are missing, in two verifications, and unless
/// everything could be read: a shortage of resources or a fault of the device is an error. Damaged
/// files are moved to a folder beside the store, `STORE.quarantine-<time>`, and never deleted;
/// bytes of a damaged file are also sought in the folders of earlier repairs. These files are
/// rebuilt, and compared with the committed hash before they are put in place:
///   - any file of which one byte is wrong: the CRC-32C tells which;
///   - the current manifest, from the files that it lists and what is left of it;
///   - the preamble, checksums and footer of a section file, even if they were cut off;
///   - FORMAT from a manifest, PIN, metadata of arrays from the manifest, row checksums from rows
///     whose chunk is sound;
///   - order, ids and topology, as far as the deriver can.
/// RocksDB repairs the catalogue; its remains are checked record by record and go into a new one.
/// If they do not tell what was committed, the newest sound manifest becomes current, and the delta
/// is lost. An array that lost rows is dropped, and all of its files go to quarantine, or it is
/// kept with holes: in layout row the rows that do not fit their checksums, else the rows of
/// damaged inner chunks or chunks. Data that cannot be repaired is listed as lost. A crash leaves a
/// store that can be repaired again. The writer's lock is held until the last change. Memory: the
/// damaged file twice, and the deriver's. Errors: kNotFound; kBusy; kUnsupported; kIoError,
/// kPermissionDenied, kOutOfSpace, kOutOfMemory; kInterrupted.
Result<RepairReport> RepairStore(FileSystem& fs, const Path& store, const RepairOptions& options,
                                 const JobControl& control);

}  // namespace rhizome
