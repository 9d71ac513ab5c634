#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "rhizome/manifest.h"
#include "rhizome/verify.h"
#include "storage/io/file_scan.h"
#include "storage/maintenance/verify_files.h"

namespace rhizome {
inline namespace internal {

/// Collects the bytes of one file while it is scanned, and passes them to a FileTaker if they have
/// the hashes in the manifest. Threads: one at a time.
class FileKeeper : public FileWatcher {
 public:
  FileKeeper(const FileEntry& file, FileTaker& taker) : file_(file), taker_(taker) {
    bytes_.reserve(file.size_bytes);  // the scan has compared this with the length of the file
  }

  void See(std::uint64_t, std::span<const std::byte> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  void End(const ScanOutcome& outcome) override {
    const bool sound =
        outcome.status.ok() && outcome.xxh3 == file_.xxh3 && outcome.crc32c == file_.crc32c;
    taker_.Take(file_, sound ? std::optional(std::move(bytes_)) : std::nullopt);
  }

 private:
  const FileEntry& file_;
  FileTaker& taker_;
  std::vector<std::byte> bytes_;
};

}  // namespace internal
}  // namespace rhizome
