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

/// All of a fake disk at one moment: a copy that nobody changes.
struct FakeImage {
  std::shared_ptr<FakeNode> root;

  /// Of names and bytes, synced or not.
  Hash128 Hash() const;
};

/// The moment before an operation that changes something.
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

  /// A disk as it was.
  explicit FakeFileSystem(const FakeImage& image);
  ~FakeFileSystem() override;

  /// What a power cut leaves of unsynced changes.
  enum class CrashMode : std::uint8_t {
    kDropUnsynced,  ///< nothing of them
    kKeepUnsynced,  ///< all of them: a killed process, the machine lives on
    kRandom,       ///< of each sector (512 bytes) and length some moment since, later sectors of no
                   ///< later moments; any names
    kTornLast,     ///< all, but the last write has only some of its sectors
    kZeroLength,   ///< the names, but none of the bytes
    kNamesUndone,  ///< the bytes and the new names, but what was removed or moved is back
    kNamesReordered,  ///< any subset of the changes of names, and of each file all or nothing
    kHoles,           ///< as kRandom, but of the sectors in any order
  };

  /// The power goes. `seed` chooses in kRandom. Failures that were ordered are forgotten.
  void Crash(CrashMode mode = CrashMode::kDropUnsynced, std::uint64_t seed = 0);

  /// The operations that count: those that change something or make it durable. Reads are counted
  /// too, so that each of them can fail.
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

  /// Is there another disk behind such an operation than before it?
  static bool Changes(Operation operation);

  /// Operations so far.
  std::uint64_t operation_count() const;

  /// Lets operation number `operation` (counted from 0 since construction) fail with `error_number`
  /// (EIO, ENOSPC, ...), and all later ones too if `sticky`. A failed Append may leave half of its
  /// bytes, a failed Sync leaves none durable: as real ones.
  void FailAt(std::uint64_t operation, int error_number, bool sticky);

  /// For FailAt, of reads only: one that is not an error, but brings only half of the bytes, or
  /// none where there are some. Other operations succeed.
  static constexpr int kShortRead = -1;
  static constexpr int kEmptyRead = -2;

  /// From now on all fake disks of this process lie: such a sync says that it was done, and does
  /// nothing. For seeded mistakes; before any thread begins.
  static void LieAboutSyncs(std::function<bool(const Path&)> matches);

  /// The same for the operations that `matches` says; it runs under the file system's lock.
  void FailWhen(std::function<bool(Operation, const Path&)> matches, int error_number);
  void ClearFailures();

  /// Names of all operations with their paths, oldest first: for messages and for tests of order.
  std::vector<std::string> Trace() const;

  FakeImage Image() const;

  /// What a crash now would leave; this disk goes on.
  FakeImage ImageAfterCrash(CrashMode mode, std::uint64_t seed) const;

  /// Begins to keep an image of the moment before each operation that changes something.
  void RecordCrashPoints();
  std::vector<FakeCrashPoint> TakeCrashPoints();

  /// What an oracle outside the store knows: promises up to `acknowledged` were given, and those up
  /// to `begun` may have been kept. Noted in the crash points.
  void SetProgress(int acknowledged, int begun);

  /// Moves a file over whatever has that name, in one folder. No function of FileSystem, as stores
  /// move nothing; but RocksDB does.
  Status RenameFile(const Path& from, const Path& to);

  /// Flips one bit of a file, durable at once. Errors: kNotFound.
  Status FlipBit(const Path& path, std::uint64_t bit);

  /// Replaces a file's bytes, durable at once. Errors: kNotFound.
  Status Overwrite(const Path& path, std::vector<std::byte> bytes);

  /// Locks that are held.
  int lock_count() const;

  /// All files, with their bytes: to compare two states.
  std::map<std::string, std::vector<std::byte>> Files() const;

  /// LinkFile says kUnsupported, as FAT does.
  void RefuseLinks(bool refuse);
  void SetFreeBytes(std::uint64_t bytes);

  /// The length that OpenRead files pretend O_DIRECT units to have when asked for direct; 1:
  /// refused.
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
