#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "storage/base/hash.h"
#include "storage/io/io_pacer.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {

struct ScanOutcome;

/// Receives the bytes of one file during a scan, front to back. Threads: one at a time.
class FileWatcher {
 public:
  virtual ~FileWatcher() = default;
  virtual void See(std::uint64_t offset_bytes, std::span<const std::byte> bytes) = 0;

  /// Called once, when the scan of the file ends. After a failed read, the remaining bytes were not
  /// passed to See.
  virtual void End(const ScanOutcome&) {}
};

/// A file to read completely, and its expected length.
struct ScanFile {
  Path path;
  std::uint64_t size_bytes = 0;

  /// Creates the file's watcher when the scan of the file begins; may return nullptr. Called from
  /// several threads.
  std::function<std::unique_ptr<FileWatcher>()> watch = {};
};

/// The outcome for one file. The hashes are valid only if `status` is OK.
struct ScanOutcome {
  Status status;                   ///< kNotFound; kCorruption, unexpected length; kIoError
  std::uint64_t offset_bytes = 0;  ///< where a read failed
  Hash128 xxh3{};
  std::uint32_t crc32c = 0;
};

struct ScanOptions {
  std::uint32_t threads = 0;  ///< each has its own queue; at most 8; 0: one per processor
  IoQueueOptions io{.depth = 16};
  IoPacer* pacer = nullptr;  ///< reads wait for its turns; nullptr: no pacing
};

/// Reads and hashes files at the speed of the disk, by direct reads of 1 MiB. Each thread keeps
/// many reads in flight, across the boundaries of files, and hashes the files that it took. Memory:
/// threads * depth MiB. Returns an outcome for each file, in order; errors of a single file are
/// reported there. Errors of the whole scan: kInterrupted, kOutOfMemory.
Result<std::vector<ScanOutcome>> ScanFiles(FileSystem& fs, std::span<const ScanFile> files,
                                           const ScanOptions& options, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
