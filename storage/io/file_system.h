#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {
class CatalogDisk;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

using Path = std::filesystem::path;

/// A file open for reading. Threads: ReadAt may be called from many threads at once.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  /// Reads up to out.size() bytes at `offset_bytes`; returns how many (0 only at or past the end).
  /// Retries EINTR itself; may otherwise be short. A direct file needs aligned offset, size,
  /// memory. Errors: kIoError.
  virtual Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) = 0;

  /// Length when the file was opened. Files of a store never change, so it stays true.
  virtual std::uint64_t size_bytes() const = 0;
  virtual const Path& path() const = 0;

  /// The descriptor, for io_uring; -1 where there is none (fakes), and then ReadAt must be used.
  virtual int descriptor() const { return -1; }

  /// Told of bytes that were read through descriptor(), by files that count.
  virtual void CountRead(std::size_t size_bytes) { static_cast<void>(size_bytes); }

  /// What offset, length and memory of a read must be multiples of: 1, or the unit of O_DIRECT.
  virtual std::uint32_t alignment_bytes() const { return 1; }
};

/// A new file, written once from front to back. Destroying it without Close leaves what was
/// written. Threads: one at a time.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  /// Errors: kIoError, kOutOfSpace.
  virtual Status Append(std::span<const std::byte> bytes) = 0;

  /// fdatasync: what was appended survives a power cut (the name only after SyncDirectory). After a
  /// failure every later call fails too: the kernel may have dropped the pages.
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
  virtual std::uint64_t size_bytes() const = 0;
  virtual const Path& path() const = 0;
};

/// A held flock; destroying it releases the lock.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// Held as long as a folder is enclosed, see FileSystem::Enclose.
class FolderEnclosure {
 public:
  virtual ~FolderEnclosure() = default;
};

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

/// The only door to the disk: everything of a store but RocksDB's own files and io_uring's reads
/// passes here, so that tests can put a fake with a crash model behind it. Files are never renamed
/// (DESIGN section 3: written under their final name where nothing names them yet).
/// Errors of every function, unless said otherwise: Status::FromErrno with operation and path.
/// Threads: all functions may be called from many threads at once.
class FileSystem {
 public:
  struct ReadOptions {
    /// O_DIRECT where the file system grants it, else buffered: see ReadableFile::alignment_bytes.
    bool direct = false;
  };
  enum class LockMode : std::uint8_t { kShared, kExclusive };

  virtual ~FileSystem() = default;

  /// Opens a regular file, never through a symbolic link.
  virtual Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                         const ReadOptions& options) = 0;
  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path) { return OpenRead(path, {}); }

  /// Creates a file that must not exist (kAlreadyExists).
  virtual Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) = 0;

  /// Opens a file for appending after its first `keep_bytes` bytes; the rest is cut off. Logs only.
  virtual Result<std::unique_ptr<WritableFile>> OpenAppend(const Path& path,
                                                           std::uint64_t keep_bytes) = 0;

  /// Creates one directory; kAlreadyExists where there is one.
  virtual Status CreateDirectory(const Path& path) = 0;
  virtual Status RemoveFile(const Path& path) = 0;
  virtual Status RemoveDirectory(const Path& path) = 0;

  /// A second name for the file `from`: publishing without a copy. kUnsupported where the file
  /// system has no links.
  virtual Status LinkFile(const Path& from, const Path& to) = 0;

  /// fsync of a directory: the names in it survive a power cut.
  virtual Status SyncDirectory(const Path& path) = 0;
  virtual Result<std::vector<DirectoryEntry>> List(const Path& path) = 0;

  /// kNotFound if there is nothing; a symbolic link is kOther.
  virtual Result<FileInfo> Stat(const Path& path) = 0;
  virtual Result<std::uint64_t> FreeBytes(const Path& path) = 0;

  /// Takes a flock without waiting. An exclusive lock creates the file if need be and writes
  /// `content` into it. Errors: kBusy, with the content of the file (its holder) in the message.
  virtual Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                                 std::string_view content) = 0;

  /// Encloses a folder that is not trusted, a store or a folder of backups: as long as the result
  /// lives, no function of this file system reaches anything below `root` through a symbolic link,
  /// and says kCorruption, naming the link, where it would; likewise where a pipe or a device is in
  /// a file's place. Links on the way to `root`, or to it, are the user's. Name what lies below it
  /// by paths that begin with it. Null where there are no links (fakes).
  virtual std::shared_ptr<FolderEnclosure> Enclose(const Path& root) {
    static_cast<void>(root);
    return nullptr;
  }

  /// Tests only: where RocksDB finds the catalogues of this file system. Null: on the real disk.
  virtual CatalogDisk* catalog_disk() { return nullptr; }

  /// The real one. Never destroyed.
  static FileSystem& Posix();
};

/// Reads exactly out.size() bytes. Errors: kCorruption if the file ends before (truncated).
Status ReadExactly(ReadableFile& file, std::uint64_t offset_bytes, std::span<std::byte> out);

/// Reads all of a file into the front of `room`: its size, rounded up to its alignment_bytes().
/// Errors: kCorruption if it ends before.
Status ReadWhole(ReadableFile& file, std::span<std::byte> room);

/// Reads a whole file. Errors: kCorruption if it is longer than `max_bytes`.
Result<std::vector<std::byte>> ReadWholeFile(FileSystem& fs, const Path& path,
                                             std::uint64_t max_bytes);

/// Creates, syncs and closes a file with the given bytes. The directory is the caller's to sync.
Status WriteWholeFile(FileSystem& fs, const Path& path, std::span<const std::byte> bytes);

/// Creates the missing directories on the way to `path` and syncs the parent of each. A link to a
/// folder will do where nothing is enclosed.
Status CreateDirectories(FileSystem& fs, const Path& path);

/// The folders that CreateDirectories would make, the innermost first; those that cannot be looked
/// at are left out.
std::vector<Path> MissingFolders(FileSystem& fs, const Path& path);

/// Removes these folders, one after the other, up to the first that is not empty or cannot go.
void RemoveEmptyFolders(FileSystem& fs, std::span<const Path> folders);

/// Removes a tree, not following links; absent is fine.
Status RemoveTree(FileSystem& fs, const Path& path);

/// Is `name` fit for an array, a type or a job: [A-Za-z0-9_.-]{1,128}, no leading dot, no ".."?
/// Errors: kInvalidArgument, quoting the name and the rule.
Status CheckName(std::string_view what, std::string_view name);

/// For files that users asked for (exports, models), and what jobs leave themselves in scratch:
/// written beside `path` under a temporary name, synced, then moved over it, so that a reader sees
/// the old file or the whole new one. The one place where a rename happens.
class OutputFile {
 public:
  enum class Place : std::uint8_t {
    kOutside,  ///< not in a store or a folder of backups (CheckOutside)
    kScratch   ///< the scratch folder of the job that writes it, which may be in a store
  };
  /// Errors: kInvalidArgument, not such a place; those of the FileSystem.
  static Result<OutputFile> Create(const Path& path, Place place = Place::kOutside);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  ///< removes the temporary file unless Commit succeeded

  Status Append(std::span<const std::byte> bytes);
  Status Commit();

 private:
  OutputFile(Path path, Path temporary, std::unique_ptr<WritableFile> file);
  Path path_;
  Path temporary_;
  std::unique_ptr<WritableFile> file_;
};

}  // namespace rhizome
