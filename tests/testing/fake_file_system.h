#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/mutex.h"

namespace rhizome::testing {

struct FakeNode;

/// An immutable copy of a fake disk at one moment.
struct FakeImage {
  std::shared_ptr<FakeNode> root;

  /// Hashes all names and bytes, synced or not.
  Hash128 Hash() const;
};

/// The moment before an operation that changes the disk.
struct FakeCrashPoint {
  std::uint64_t operation = 0;  ///< its number
  std::string what;             ///< as in Trace
  int acknowledged = 0;         ///< see FakeFileSystem::SetProgress
  int begun = 0;
  FakeImage image;
};

/// A file system in memory that forgets what was not synced, and that fails on demand.
///
/// The model is as harsh as POSIX allows:
///   (1) bytes survive a crash once their file was synced (WritableFile::Sync), not before;
///   (2) a name (and the absence of a removed one) survives once its directory was synced
///       (SyncDirectory), not before, even if the file's bytes were; those that changed in one
///       operation survive together or not at all;
///   (3) a directory that is lost takes everything below it along;
///   (4) locks do not survive, and no file or lock opened before a crash works after it.
///
/// There is one root, "/"; relative paths begin there, "." and ".." are resolved by name. The root
/// itself is always durable. Files have no descriptor, so both makers of IoQueue read them through
/// ReadAt.
///
/// Threads: all functions from many threads at once.
/// Ownership: shared_ptr inside, so that open files outlive removal, as they do in Unix.
class FakeFileSystem : public FileSystem {
 public:
  FakeFileSystem();

  /// A disk that starts as `image`.
  explicit FakeFileSystem(const FakeImage& image);
  ~FakeFileSystem() override;

  /// The unsynced changes that survive a power cut.
  enum class CrashMode : std::uint8_t {
    kDropUnsynced,  ///< none of them
    kKeepUnsynced,  ///< all of them: a process was killed, the machine lives on
    /// Each sector (512 bytes), and the length, is of some moment since the last sync; no sector is
    /// of a later moment than one before it.
    kRandom,
    kTornLast,     ///< all, but of the last write only some sectors
    kZeroLength,   ///< the names, but none of the bytes
    kNamesUndone,  ///< the bytes and the new names, but names that were removed or moved are back
    kNamesReordered,  ///< any subset of the changes of names; of each file all bytes or none
    kHoles,           ///< like kRandom, but sectors in any order
  };

  /// Cuts the power. `seed` is for the random modes. Failures that were requested are cleared.
  void Crash(CrashMode mode = CrashMode::kDropUnsynced, std::uint64_t seed = 0);

  /// The operations that are counted: changes, syncs, and also reads, so that each of them can
  /// fail.
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
  };

  /// Returns whether such an operation changes the disk.
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

  /// From now on matching syncs on all fake disks of this process do nothing and report success.
  /// For seeded mistakes; call before any thread starts.
  static void LieAboutSyncs(std::function<bool(const Path&)> matches);

  /// Makes all operations fail for which `matches` returns true; it is called under the file
  /// system's lock.
  void FailWhen(std::function<bool(Operation, const Path&)> matches, int error_number);
  void ClearFailures();

  /// Returns the names of all operations with their paths, oldest first, for messages and for tests
  /// of order.
  std::vector<std::string> Trace() const;

  FakeImage Image() const;

  /// Returns what a crash now would leave; this disk is not changed.
  FakeImage ImageAfterCrash(CrashMode mode, std::uint64_t seed) const;

  /// Starts keeping an image of the moment before each operation that changes the disk.
  void RecordCrashPoints();
  std::vector<FakeCrashPoint> TakeCrashPoints();

  /// Notes the knowledge of an oracle outside the store in the crash points: promises up to
  /// `acknowledged` were given, and those up to `begun` may have been kept.
  void SetProgress(int acknowledged, int begun);

  /// Moves a file over whatever has that name, within one folder. It is not a function of
  /// FileSystem, because stores move nothing; RocksDB does.
  Status RenameFile(const Path& from, const Path& to);

  /// Flips one bit of a file; the change is durable at once. Errors: kNotFound.
  Status FlipBit(const Path& path, std::uint64_t bit);

  /// Replaces a file's bytes; the change is durable at once. Errors: kNotFound.
  Status Overwrite(const Path& path, std::vector<std::byte> bytes);

  /// Returns the number of locks that are held.
  int lock_count() const;

  /// Returns all files with their bytes, to compare two states.
  std::map<std::string, std::vector<std::byte>> Files() const;

  /// Makes LinkFile return kUnsupported, as on FAT.
  void RefuseLinks(bool refuse);
  void SetFreeBytes(std::uint64_t bytes);

  /// Sets the unit of direct reads that files report when opened for them; 1: O_DIRECT is refused.
  void SetDirectAlignment(std::uint32_t bytes);

  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override;
  using FileSystem::OpenRead;
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override;
  Result<std::unique_ptr<WritableFile>> OpenAppend(const Path& path,
                                                   std::uint64_t keep_bytes) override;
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
