#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/verify.h"

namespace rhizome {

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
/// (rhizome/maintenance.h) also checks what only a graph can know, and reads the bytes only once.
/// Errors: as VerifyStore.
Result<VerifyReport> VerifyFiles(FileSystem& fs, const Path& store, const JobControl& control,
                                 FileTaker* taker = nullptr);

}  // namespace rhizome
