#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/storage/damage.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"

namespace RHIZOME_API rhizome {

struct VerifyReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<Damage> damaged;
  std::vector<Unread> unread;  ///< nobody knows whether these are sound

  /// The rows of the current generation's row arrays were compared with their sidecars: VerifyGraph
  /// need not read them again.
  bool rows_checked = false;

  /// What killed writers and jobs left, which is no damage: files, generations and scratch folders,
  /// relative to the store. The next open for writing removes them. In a folder of backups: files
  /// that the next backup removes, or, beginning with "backups/", records that are cut off.
  std::vector<std::string> orphans;

  /// Folders in scratch/ that no job of this version has put there: nothing removes them.
  std::vector<std::string> strangers;
  bool ok() const { return damaged.empty() && unread.empty(); }

  /// kCorruption if damage was found; else the first error of `unread`; else OK.
  Status verdict() const;
};

/// Gets files of the current generation whole, as VerifyFiles reads them, so that whoever
/// understands them need not read them again. Threads: Admit and Take are called from many at once,
/// while the other files are being read. Ownership: must outlive the call.
class FileTaker {
 public:
  virtual ~FileTaker() = default;

  /// The current manifest, before any file that it names is read. Not called where that is damaged.
  virtual void Begin(const Manifest& manifest) = 0;

  /// Files that may be kept are read before the others, in the order of their paths.
  virtual bool Wants(const FileEntry& file) const = 0;

  /// Is there room for such a file? Asked as its reading begins; Take follows if there is.
  virtual bool Admit(const FileEntry& file) = 0;

  /// Its bytes, which have the hash that the manifest holds; nothing if they do not, or if they
  /// cannot be read.
  virtual void Take(const FileEntry& file, std::optional<std::vector<std::byte>> bytes) = 0;
};

/// Reads every byte of a store and compares it with what was committed: the catalogue's own
/// checksums, every manifest, every file's length, CRC-32C and XXH3-128, the rows of row arrays
/// against their sidecars, files that are missing and files that no killed writer can have left.
/// Reads with O_DIRECT where that is granted, many reads in flight, and hashes on all processors.
/// Goes on after damage, so that the list is complete.
/// What only a graph can know (offsets, permutations) is checked by VerifyGraph (index/graph.h);
/// both at once, reading the bytes once, by VerifyStore (index/verify_store.h).
/// A writer may be at work meanwhile; then what is not committed yet is not looked at.
/// Damage is what was read and is wrong, or is not there. A file that could not be read (kIoError,
/// kPermissionDenied, kOutOfMemory, ...) is listed as unread.
/// Errors: kNotFound, no store; kInterrupted; kBusy, a writer keeps cleaning up; kIoError,
/// kPermissionDenied, kOutOfMemory, FORMAT or the catalogue could not be read, without which
/// nothing can be told.
Result<VerifyReport> VerifyFiles(FileSystem& fs, const Path& store, const JobControl& control,
                                 FileTaker* taker = nullptr);

}  // namespace rhizome
