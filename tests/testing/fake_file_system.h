#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "storage/base/hash.h"
#include "storage/base/mutex.h"
#include "storage/io/updatable_file.h"

namespace rhizome::testing {

struct FakeNode;

/// An immutable copy of a fake disk at one moment.
struct FakeImage {
  std::shared_ptr<FakeNode> root;

  /// Returns a hash of all names and bytes, synced or not.
  Hash128 Hash() const;
};

/// The state just before an operation that changes the disk.
struct FakeCrashPoint {
  std::uint64_t operation = 0;  ///< its number
  std::string what;             ///< as in Trace
  int acknowledged = 0;         ///< see FakeFileSystem::SetProgress
  int begun = 0;
  FakeImage image;
};

/// A file system in memory that loses unsynced changes in a crash, and that fails on demand.
///
/// The model is as strict as POSIX allows:
///   (1) the bytes of a file survive a crash only after a sync of the file (WritableFile::Sync);
///   (2) a name, or its removal, survives only after a sync of its directory (SyncDirectory), even
///       if the file's bytes are durable; the names that one operation changes survive together or
///       not at all;
///   (3) with a directory, everything below it is lost;
///   (4) locks do not survive a crash, and files and locks that were opened before it fail after
///   it.
///
/// There is one root, "/". Relative paths start there, and "." and ".." are resolved lexically. The
/// root itself is always durable. Files have no descriptor, so every kind of IoQueue reads them
/// through ReadAt.
///
/// Threads: all functions may be called concurrently.
/// Ownership: files share the state, so that open files remain usable after removal, as in Unix.
class FakeFileSystem : public FileSystem, public UpdatableFiles {
 public:
  FakeFileSystem();

  /// Creates a disk with the contents of `image`.
  explicit FakeFileSystem(const FakeImage& image);
  ~FakeFileSystem() override;

  /// The unsynced changes that survive a power cut.
  enum class CrashMode : std::uint8_t {
    kDropUnsynced,  ///< none of them
    kKeepUnsynced,  ///< all of them: only the process was killed
    /// Each sector (512 bytes), and the length, is from some moment since the last sync. No sector
    /// is from a later moment than a sector before it.
    kRandom,
    kTornLast,        ///< all, except some sectors of the last write
    kZeroLength,      ///< the changes of names, but not of bytes
    kNamesUndone,     ///< all bytes and new names; removed and moved names are back
    kNamesReordered,  ///< any subset of name changes; each file has all of its bytes or none
    kHoles,           ///< like kRandom, but sectors in any order
  };

  /// Cuts the power. `seed` is for the random modes. Clears the failures that were requested.
  void Crash(CrashMode mode = CrashMode::kDropUnsynced, std::uint64_t seed = 0);

  /// The operations that are counted. Reads are counted, too, so that each of them can fail.
  enum class Operation : std::uint8_t {
    kOpenRead,
    kRead,
    kCreateFile,
    kOpenAppend,
    kAppend,
    kSync,
    kClose,
    kCreateDirectory,
    kRemoveFile,
    kRemoveDirectory,
    kLinkFile,
    kSyncDirectory,
    kList,
    kStat,
    kFreeBytes,
    kLock,
    kRename,
    kOpenUpdatable,
    kWriteAt,
  };

  /// Returns whether an operation changes the disk.
  static bool Changes(Operation operation);

  /// Returns the number of operations so far.
  std::uint64_t operation_count() const;

  /// Makes operation number `operation` (counted from 0 since construction) fail with
  /// `error_number` (EIO, ENOSPC, ...), and all later ones too if `sticky`. As in reality, a failed
  /// Append may leave half of its bytes, and a failed Sync makes none durable.
  void FailAt(std::uint64_t operation, int error_number, bool sticky);

  /// Values for FailAt that affect reads only: the read succeeds but returns only half of the
  /// bytes, or none although there are some. Other operations succeed.
  static constexpr int kShortRead = -1;
  static constexpr int kEmptyRead = -2;

  /// Makes matching syncs on all fake disks of this process do nothing and report success. For
  /// tests with seeded faults. Call before any thread starts.
  static void LieAboutSyncs(std::function<bool(const Path&)> matches);

  /// Makes all operations fail for which `matches` returns true. `matches` is called under the lock
  /// of the file system.
  void FailWhen(std::function<bool(Operation, const Path&)> matches, int error_number);
  void ClearFailures();

  /// Returns the names of all operations with their paths, oldest first. For messages and for tests
  /// that check the order of operations.
  std::vector<std::string> Trace() const;

  FakeImage Image() const;

  /// Returns the contents that a crash at this moment would leave. Does not change this disk.
  FakeImage ImageAfterCrash(CrashMode mode, std::uint64_t seed) const;

  /// Starts recording an image of the disk before each operation that changes it.
  void RecordCrashPoints();
  std::vector<FakeCrashPoint> TakeCrashPoints();

  /// Records the state of an external oracle in the crash points. Promises up to `acknowledged`
  /// have been confirmed; promises up to `begun` may have been fulfilled.
  void SetProgress(int acknowledged, int begun);

  /// Moves a file within one folder, replacing any file of that name. Not part of FileSystem,
  /// because only RocksDB moves files; stores do not.
  Status RenameFile(const Path& from, const Path& to);

  /// Flips one bit of a file; the change is durable at once. Errors: kNotFound.
  Status FlipBit(const Path& path, std::uint64_t bit);

  /// Replaces a file's bytes; the change is durable at once. Errors: kNotFound.
  Status Overwrite(const Path& path, std::vector<std::byte> bytes);

  /// Returns the number of locks that are held.
  int lock_count() const;

  /// Returns all files with their bytes, for comparing two states.
  std::map<std::string, std::vector<std::byte>> Files() const;

  /// Makes LinkFile return kUnsupported, as on FAT.
  void RefuseLinks(bool refuse);
  void SetFreeBytes(std::uint64_t bytes);

  /// Sets the alignment in bytes of direct reads that opened files report. 1: O_DIRECT is not
  /// supported.
  void SetDirectAlignment(std::uint32_t bytes);

  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override;
  using FileSystem::OpenRead;
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override;
  Result<std::unique_ptr<WritableFile>> OpenAppend(const Path& path,
                                                   std::uint64_t keep_bytes) override;
  Result<std::unique_ptr<UpdatableFile>> OpenUpdatable(const Path& path, std::uint64_t size_bytes,
                                                       const ReadOptions& options) override;
  Status CreateDirectory(const Path& path) override;
  Status RemoveFile(const Path& path) override;
  Status RemoveDirectory(const Path& path) override;
  Status LinkFile(const Path& from, const Path& to) override;
  Status SyncDirectory(const Path& path) override;
  Result<std::vector<DirectoryEntry>> List(const Path& path) override;
  Result<FileInfo> Stat(const Path& path) override;
  Result<std::uint64_t> FreeBytes(const Path& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override;

  /// The shared state; public only so that the file classes in the .cc file can name it.
  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace rhizome::testing
