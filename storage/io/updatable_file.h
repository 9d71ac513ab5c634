#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// A file of a job's scratch folder that is rewritten in place. A store has no such file.
/// Threads: ReadAt and WriteAt may be called from many threads at once, for ranges that do not
/// overlap.
class UpdatableFile : public ReadableFile {
 public:
  /// Writes all of `bytes`, within size_bytes(). A direct file needs aligned offset, size and
  /// memory. Errors: kIoError, kOutOfSpace.
  virtual Status WriteAt(std::uint64_t offset_bytes, std::span<const std::byte> bytes) = 0;

  /// fdatasync, as WritableFile::Sync. After a failed write or sync every later one fails, too.
  virtual Status Sync() = 0;
};

/// A part of a FileSystem that can rewrite files. Separate from FileSystem, because its users need
/// no such files.
class UpdatableFiles {
 public:
  virtual ~UpdatableFiles() = default;
  virtual Result<std::unique_ptr<UpdatableFile>> OpenUpdatable(
      const Path& path, std::uint64_t size_bytes, const FileSystem::ReadOptions& options) = 0;
};

/// Opens a file to rewrite it in place, and creates it if it does not exist. The file then has
/// `size_bytes` bytes, zeros where nothing was written. Their disk space is reserved if the file
/// system can. Errors: kOutOfSpace; kUnsupported, `fs` cannot rewrite files; as
/// FileSystem::OpenRead.
Result<std::unique_ptr<UpdatableFile>> OpenUpdatable(FileSystem& fs, const Path& path,
                                                     std::uint64_t size_bytes,
                                                     const FileSystem::ReadOptions& options);

}  // namespace internal
}  // namespace rhizome
