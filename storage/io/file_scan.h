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

/// Sees the bytes of one file on their way, front to back. Threads: one at a time.
class FileWatcher {
 public:
  virtual ~FileWatcher() = default;
  virtual void See(std::uint64_t offset_bytes, std::span<const std::byte> bytes) = 0;

  /// Once, after the last byte, or after the first that could not be read.
  virtual void End(const ScanOutcome&) {}
};

/// A file to read whole, and how long it must be.
struct ScanFile {
  Path path;
  std::uint64_t size_bytes = 0;

  /// Makes the file's watcher when its turn comes; may return nullptr. Called from many threads.
  std::function<std::unique_ptr<FileWatcher>()> watch = {};
};

/// What became of it. Hashes count where `status` is OK.
struct ScanOutcome {
  Status status;                   ///< kNotFound; kCorruption, another length; kIoError
  std::uint64_t offset_bytes = 0;  ///< where a read failed
  Hash128 xxh3{};
  std::uint32_t crc32c = 0;
};

struct ScanOptions {
  std::uint32_t threads = 0;  ///< each with a queue of its own; 0: as many as there are processors
  IoQueueOptions io{.depth = 16};
  IoPacer* pacer = nullptr;  ///< whose turns are waited for, if there is one
};

/// Reads and hashes files as fast as the disk gives them: large direct reads, many in flight also
/// across the ends of files, hashed by several threads, a file by one. Memory: threads * depth
/// MiB. Whatever is wrong with a file is its outcome; errors of the whole: kInterrupted,
/// kOutOfMemory.
Result<std::vector<ScanOutcome>> ScanFiles(FileSystem& fs, std::span<const ScanFile> files,
                                           const ScanOptions& options, const JobControl& control);

}  // namespace rhizome::inline internal
