#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/damage.h"
#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"

namespace RHIZOME_API rhizome {

/// The result of a verification.
struct VerifyReport {
  std::uint64_t files = 0;      ///< files that were checked
  std::uint64_t bytes = 0;      ///< bytes that were read
  std::vector<Damage> damaged;  ///< files that are damaged or missing
  std::vector<Unread> unread;   ///< files that could not be read; they may be intact or not

  /// True if the rows of the current generation's row arrays were compared with their sidecars, so
  /// that VerifyGraph need not read them again.
  bool rows_checked = false;

  /// Leftovers of killed writers and jobs, which are not damage: files, generations and scratch
  /// folders, relative to the store. The next opening for writing removes them. In a folder of
  /// backups: files that the next backup removes and, beginning with "backups/", truncated records.
  std::vector<std::string> orphans;

  /// Files and folders with names that stores never use (.DS_Store, lost+found), and folders in
  /// scratch/ without the mark of a job of this version. They are not damage, and are never
  /// removed.
  std::vector<std::string> strangers;
  bool ok() const { return damaged.empty() && unread.empty(); }

  /// Returns kCorruption if damage was found; otherwise the first error of `unread`, or OK.
  Status verdict() const;
};

/// Receives whole files of the current generation while VerifyFiles reads them, so that a check of
/// their contents need not read them again. Threads: Admit and Take are called from many threads at
/// once, while other files are being read. Ownership: must outlive the call.
class FileTaker {
 public:
  virtual ~FileTaker() = default;

  /// Called with the current manifest before any file that it names is read; not called if the
  /// manifest is damaged.
  virtual void Begin(const Manifest& manifest) = 0;

  /// Returns whether the taker may want a file. Such files are read before the others, in the order
  /// of their paths.
  virtual bool Wants(const FileEntry& file) const = 0;

  /// Returns whether there is memory for such a file. Called when its scan begins; if it returns
  /// true, Take follows.
  virtual bool Admit(const FileEntry& file) = 0;

  /// Receives the file's bytes, which have the manifest's hashes; nullopt if they do not, or could
  /// not be read.
  virtual void Take(const FileEntry& file, std::optional<std::vector<std::byte>> bytes) = 0;

  /// Called before Begin for each array of layout kRow that has its sidecar. Returns a function
  /// that is called with each of its rows while they are read, from many threads at once and with
  /// chunks in any order; empty if the taker does not want them. Rows that cannot be read are
  /// omitted.
  using SeeRow = std::function<void(std::uint64_t row, std::span<const std::byte> bytes)>;
  virtual SeeRow RowsOf(const ArrayEntry& array) {
    static_cast<void>(array);
    return {};
  }
};

/// Reads every byte of a store and compares it with what was committed: the catalogue's own
/// checksums, every manifest, every file's length, CRC-32C and XXH3-128, and the rows of row arrays
/// with their sidecars. It also finds missing files, and files that cannot be leftovers of a killed
/// writer. It reads with O_DIRECT if the file system supports it, with many reads in flight, hashes
/// on up to eight threads, and continues after damage, so that the list is complete. VerifyStore
/// (rhizome/verify_store.h) also checks what only a graph can know, and reads the bytes only once.
/// Errors: as VerifyStore.
Result<VerifyReport> VerifyFiles(FileSystem& fs, const Path& store, const JobControl& control,
                                 FileTaker* taker = nullptr);

}  // namespace rhizome
