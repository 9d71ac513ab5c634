#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/io_pacer.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

struct ScanOutcome;

/// Receives the bytes of one file while it is scanned, front to back. Threads: one at a time.
class FileWatcher {
 public:
  virtual ~FileWatcher() = default;
  virtual void See(std::uint64_t offset_bytes, std::span<const std::byte> bytes) = 0;

  /// Called once, when the scan is done with the file. Bytes from the first failed read on were not
  /// seen.
  virtual void End(const ScanOutcome&) {}
};

/// A file to read whole, and how long it must be.
struct ScanFile {
  Path path;
  std::uint64_t size_bytes = 0;

  /// Makes the file's watcher when its turn comes; may return nullptr. Called from many threads.
  std::function<std::unique_ptr<FileWatcher>()> watch = {};
};

/// The outcome for one file. The hashes are valid if `status` is OK.
struct ScanOutcome {
  Status status;                   ///< kNotFound; kCorruption, another length; kIoError
  std::uint64_t offset_bytes = 0;  ///< where a read failed
  Hash128 xxh3{};
  std::uint32_t crc32c = 0;
};

struct ScanOptions {
  std::uint32_t threads = 0;  ///< each with a queue of its own, at most 8; 0: one a processor
  IoQueueOptions io{.depth = 16};
  IoPacer* pacer = nullptr;  ///< reads wait for its turns; nullptr: no pacing
};

/// Reads and hashes files at the rate of the disk, by direct reads of 1 MiB. Each thread has many
/// reads in flight, also across the ends of files, and hashes the files that it took. Memory:
/// threads * depth MiB. Returns an outcome for each file, in order; a fault of a file shows there.
/// Errors of the scan: kInterrupted, kOutOfMemory.
Result<std::vector<ScanOutcome>> ScanFiles(FileSystem& fs, std::span<const ScanFile> files,
                                           const ScanOptions& options, const JobControl& control);

}  // namespace rhizome::inline internal
