#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"
#include "rhizome/verify.h"
#include "storage/maintenance/lost_rows.h"

namespace rhizome {

/// A chunk of a bound array, or of its sidecar, that the manifest should list and does not, or the
/// reverse.
struct ChunkFault {
  std::string array;  ///< the stored name
  std::uint64_t chunk = 0;
  std::string file;            ///< path within the generation
  std::vector<RowRange> rows;  ///< of the type; empty: the chunk is superfluous
  std::string what;            ///< for users
  bool operator==(const ChunkFault&) const = default;
};

/// The mistakes of a manifest whose files are all intact.
struct ManifestFaults {
  std::vector<ChunkFault> chunks;
  std::optional<std::vector<EdgeEnds>> ends;  ///< the right ends, if the manifest has wrong ones
  std::string what_ends;                      ///< for users
  bool operator==(const ManifestFaults&) const = default;
};

/// Derives files that only a graph understands (RepairGraph, rhizome/maintenance.h).
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

  /// Compares the manifest with the order and the topology. Finds nothing if those are damaged.
  /// Errors: as for Derive.
  virtual Result<ManifestFaults> FindFaults(const Source& source) = 0;
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
/// otherwise the rows of damaged inner chunks or chunks. An edge attribute that has values in
/// commits is always kept with holes. The same holds for an array whose manifest
/// lacks a chunk; a chunk that should not be there is left out, and the ends of edge types are
/// written again, in a new version of the manifest. Data that cannot be repaired is listed as lost.
/// After a crash the repair can be run again. The writer's lock is held until the last change.
/// Memory: twice the damaged file, plus the deriver's. Errors: kNotFound; kBusy; kUnsupported;
/// kIoError, kPermissionDenied, kOutOfSpace, kOutOfMemory; kInterrupted.
Result<RepairReport> RepairStore(FileSystem& fs, const Path& store, const RepairOptions& options,
                                 const JobControl& control);

}  // namespace rhizome
