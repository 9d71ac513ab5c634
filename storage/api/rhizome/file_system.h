#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {
class CatalogDisk;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

using Path = std::filesystem::path;

/// A file open for reading. Threads: ReadAt may be called from many threads at once.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  /// Reads up to out.size() bytes at `offset_bytes`; returns the number of bytes read (0 only at or
  /// past the end). Retries EINTR itself, but may otherwise read less than requested. A direct file
  /// needs aligned offset, size and memory.
  /// Errors: kIoError.
  virtual Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) = 0;

  /// Length when the file was opened. Files of a store never change, so it remains valid.
  virtual std::uint64_t size_bytes() const = 0;
  virtual const Path& path() const = 0;

  /// The descriptor, for io_uring; -1 if the file has none (fakes): then ReadAt must be used.
  virtual int descriptor() const { return -1; }

  /// Called by a queue that has read `size_bytes` through descriptor(). Does nothing unless the
  /// file counts metrics.
  virtual void CountRead(std::size_t size_bytes) { static_cast<void>(size_bytes); }

  /// Offset, length and memory of a read must be multiples of this: 1, or the block size of
  /// O_DIRECT.
  virtual std::uint32_t alignment_bytes() const { return 1; }
};

/// A file that is written once, sequentially. Appends may be buffered. If it is destroyed without
/// Close, the appended bytes are kept but errors are dropped. Threads: one at a time.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  /// Errors: kIoError, kOutOfSpace.
  virtual Status Append(std::span<const std::byte> bytes) = 0;

  /// fdatasync: makes the appended bytes survive a power cut (the name only survives after
  /// SyncDirectory). After a failure every later call fails too, because the kernel may have
  /// dropped the pages.
  virtual Status Sync() = 0;
  virtual Status Close() = 0;

  /// Bytes in the file so far, including those before OpenAppend.
  virtual std::uint64_t size_bytes() const = 0;
  virtual const Path& path() const = 0;
};

/// A held flock. Its destructor releases the lock.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// Keeps a folder enclosed during its lifetime; see FileSystem::Enclose.
class FolderEnclosure {
 public:
  virtual ~FolderEnclosure() = default;
};

/// An entry of a folder. A symbolic link is kOther.
struct DirectoryEntry {
  enum class Kind : std::uint8_t { kFile, kDirectory, kOther };
  std::string name;
  Kind kind = Kind::kOther;
};

struct FileInfo {
  DirectoryEntry::Kind kind = DirectoryEntry::Kind::kOther;
  std::uint64_t size_bytes = 0;
  std::uint64_t link_count = 1;
};

/// The interface to the disk. A store accesses the disk only through it, except for RocksDB's own
/// files and io_uring's reads, so that tests can substitute a fake with a crash model. Files are
/// never renamed: each is written under its final name before anything refers to it
/// (docs/DESIGN.md, section 3). Errors of every function, unless documented otherwise:
/// Status::FromErrno with operation and path.
/// Threads: all functions may be called from many threads at once.
class FileSystem {
 public:
  struct ReadOptions {
    /// Reads with O_DIRECT if the file system supports it, otherwise buffered. With O_DIRECT, reads
    /// must respect ReadableFile::alignment_bytes.
    bool direct = false;
  };
  enum class LockMode : std::uint8_t { kShared, kExclusive };

  virtual ~FileSystem() = default;

  /// Opens a regular file. Never follows a symbolic link.
  virtual Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                         const ReadOptions& options) = 0;
  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path) { return OpenRead(path, {}); }

  /// Creates a file that must not exist (kAlreadyExists).
  virtual Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) = 0;

  /// Opens a file for appending after its first `keep_bytes` bytes and cuts off the rest. For logs
  /// only.
  virtual Result<std::unique_ptr<WritableFile>> OpenAppend(const Path& path,
                                                           std::uint64_t keep_bytes) = 0;

  /// Creates one directory. Errors: kAlreadyExists, the name is in use.
  virtual Status CreateDirectory(const Path& path) = 0;
  virtual Status RemoveFile(const Path& path) = 0;
  virtual Status RemoveDirectory(const Path& path) = 0;

  /// Creates a second name (a hard link) for the file `from`, to publish it without a copy.
  /// Errors: kUnsupported, the file system has no hard links.
  virtual Status LinkFile(const Path& from, const Path& to) = 0;

  /// Makes the names in a directory survive a power cut (fsync).
  virtual Status SyncDirectory(const Path& path) = 0;

  /// Returns the entries of a folder, sorted by name, without "." and "..".
  virtual Result<std::vector<DirectoryEntry>> List(const Path& path) = 0;

  /// Describes an entry without following a symbolic link: the kind of a link is kOther.
  /// Errors: kNotFound.
  virtual Result<FileInfo> Stat(const Path& path) = 0;

  /// Returns the bytes that an unprivileged process may still write on the file system of `path`.
  virtual Result<std::uint64_t> FreeBytes(const Path& path) = 0;

  /// Takes a flock without waiting. An exclusive lock creates the file if needed and writes
  /// `content` into it; if `content` is empty, the file is left unchanged. Errors: kBusy; the
  /// message names the holder if it is known.
  virtual Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                                 std::string_view content) = 0;

  /// Encloses an untrusted folder: a store or a folder of backups. During the lifetime of the
  /// result, no function of this file system follows a symbolic link below `root`: it returns
  /// kCorruption and names the link. A pipe or a device in place of a file is kCorruption, too.
  /// `root` itself and the folders above it belong to the user; links there are followed. The rule
  /// applies to paths that begin with `root` as it is spelt here. Returns nullptr if the file
  /// system has no links (fakes).
  virtual std::shared_ptr<FolderEnclosure> Enclose(const Path& root) {
    static_cast<void>(root);
    return nullptr;
  }

  /// For tests: the disk on which RocksDB keeps the catalogues of this file system; nullptr for the
  /// real disk.
  virtual CatalogDisk* catalog_disk() { return nullptr; }

  /// The file system of the operating system. It is never destroyed.
  static FileSystem& Posix();
};

}  // namespace rhizome
