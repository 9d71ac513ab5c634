#include "storage/catalog/catalog_env.h"

#include <fmt/format.h>
#include <rocksdb/file_system.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/catalog/catalog_files.h"

namespace rhizome {
inline namespace internal {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

bool IsLog(const std::filesystem::path& path) {
  return path.extension() == ".log" || path.filename().native().starts_with("MANIFEST-");
}

IOStatus LeftBehind() { return IOStatus::IOError("the database was left behind"); }

/// A file that accepts no more writes once the gate is shut.
class GatedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  GatedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<CatalogGate> gate)
      : FSWritableFileOwnerWrapper(std::move(file)), gate_(std::move(gate)) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    return gate_->shut() ? LeftBehind() : target()->Append(data, options, context);
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* context) override {
    return gate_->shut() ? LeftBehind() : target()->Append(data, options, info, context);
  }

 private:
  const std::shared_ptr<CatalogGate> gate_;
};

/// Wraps the file system of `base` as described at MakeCatalogEnv:
///   - NewSequentialFile opens logs and MANIFESTs as checked logs, and NewRandomAccessFile opens
///     tables as checked tables (catalog_files.h);
///   - GetChildren refuses names with a number that no file of RocksDB can have;
///   - RenameFile syncs the folder before it replaces CURRENT;
///   - faults are recorded in `fault`;
///   - files can no longer be changed once `gate` is shut.
class CatalogFileSystem : public rocksdb::FileSystemWrapper {
 public:
  CatalogFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base,
                    std::shared_ptr<CatalogFault> fault, std::shared_ptr<CatalogGate> gate)
      : FileSystemWrapper(base), fault_(std::move(fault)), gate_(std::move(gate)) {}
  const char* Name() const override { return "RhizomeCatalogFileSystem"; }

  IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* context) override {
    const IOStatus opened = target()->NewSequentialFile(name, options, result, context);
    if (!opened.ok() || !IsLog(name)) return Noted(name, opened);
    std::uint64_t file_bytes = 0;
    const IOStatus stat = SizeOf(name, &file_bytes, context);
    if (file_bytes == kRemoved) file_bytes = 0;
    if (stat.ok())
      *result = MakeCheckedLog(std::move(*result), name, file_bytes, *target(), claims_);
    return Noted(name, stat);
  }

  IOStatus NewRandomAccessFile(const std::string& name, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext* context) override {
    const IOStatus opened = target()->NewRandomAccessFile(name, options, result, context);
    if (!opened.ok() || std::filesystem::path(name).extension() != ".sst")
      return Noted(name, opened);
    std::uint64_t file_bytes = 0;
    const IOStatus stat = SizeOf(name, &file_bytes, context);
    if (!stat.ok() || file_bytes == kRemoved) return Noted(name, stat);
    return Noted(name, MakeCheckedTable(result, name, file_bytes, *claims_, context));
  }

  IOStatus GetChildren(const std::string& folder, const IOOptions& options,
                       std::vector<std::string>* result, IODebugContext* context) override {
    const IOStatus listed = target()->GetChildren(folder, options, result, context);
    if (!listed.ok()) return listed;
    // RocksDB numbers its next file after the largest number, which must not overflow.
    for (const std::string& name : *result)
      if (NumberOfRocksFile(name) == ~std::uint64_t{0})
        return IOStatus::Corruption(folder + ": not the name of a file of RocksDB: " + name);
    return listed;
  }

  // If RocksDB cannot determine the length of a table, it treats the table as too short; so record
  // the fault.
  IOStatus GetFileSize(const std::string& name, const IOOptions& options, std::uint64_t* file_bytes,
                       IODebugContext* context) override {
    return Noted(name, target()->GetFileSize(name, options, file_bytes, context));
  }

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* context) override {
    if (gate_->shut()) return LeftBehind();
    const IOStatus made = target()->NewWritableFile(name, options, result, context);
    if (made.ok()) *result = std::make_unique<GatedFile>(std::move(*result), gate_);
    return made;
  }

  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* context) override {
    return gate_->shut() ? LeftBehind() : target()->DeleteFile(name, options, context);
  }

  IOStatus LockFile(const std::string& name, const IOOptions& options, rocksdb::FileLock** lock,
                    IODebugContext* context) override {
    const IOStatus locked = target()->LockFile(name, options, lock, context);
    if (locked.ok()) gate_->Took(*lock, target_);
    return locked;
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions& options,
                      IODebugContext* context) override {
    gate_->Gave(lock);
    return target()->UnlockFile(lock, options, context);
  }

  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* context) override {
    if (gate_->shut()) return LeftBehind();
    const std::filesystem::path path = to;
    if (path.filename() == "CURRENT" && !RHIZOME_MUTANT("CURRENT moves first")) {
      const IOStatus synced = SyncFolder(path.parent_path(), options, context);
      if (!synced.ok()) return synced;
    }
    return target()->RenameFile(from, to, options, context);
  }

 private:
  const IOStatus& Noted(const std::string& name, const IOStatus& status) const {
    fault_->Note(name, status);
    return status;
  }

  static constexpr std::uint64_t kRemoved = ~std::uint64_t{0};

  /// Gets the size of an open file. Sets it to kRemoved if a writer has removed the file in the
  /// meantime, which is not an error.
  IOStatus SizeOf(const std::string& name, std::uint64_t* file_bytes, IODebugContext* context) {
    const IOStatus stat = target()->GetFileSize(name, {}, file_bytes, context);
    if (!stat.IsPathNotFound() && !stat.IsNotFound()) return stat;
    *file_bytes = kRemoved;
    return IOStatus::OK();
  }

  IOStatus SyncFolder(const std::string& folder, const IOOptions& options,
                      IODebugContext* context) {
    std::unique_ptr<rocksdb::FSDirectory> directory;
    const IOStatus opened = target()->NewDirectory(folder, options, &directory, context);
    return opened.ok() ? directory->Fsync(options, context) : opened;
  }

  const std::shared_ptr<CatalogFault> fault_;
  const std::shared_ptr<CatalogGate> gate_;
  const std::shared_ptr<CatalogClaims> claims_ = std::make_shared<CatalogClaims>();
};

/// Refuses all writes after the first fault. Threads: any.
class Broken {
 public:
  explicit Broken(std::shared_ptr<CatalogFault> fault) : fault_(std::move(fault)) {}

  template <typename Write>
  IOStatus Try(const std::string& name, const Write& write) {
    if (!fault_->status().ok()) return IOStatus::IOError("an earlier operation failed");
    IOStatus status = write();
    fault_->Note(name, status);
    return status;
  }

 private:
  const std::shared_ptr<CatalogFault> fault_;
};

class FailStopFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FailStopFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name, Broken broken)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        broken_(std::move(broken)) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    return broken_.Try(name_, [&] { return target()->Append(data, options, context); });
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* context) override {
    return broken_.Try(name_, [&] { return target()->Append(data, options, info, context); });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    return broken_.Try(name_, [&] { return target()->Sync(options, context); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return broken_.Try(name_, [&] { return target()->Fsync(options, context); });
  }

 private:
  const std::string name_;
  Broken broken_;
};

/// See MakeRepairEnv.
class RepairFileSystem final : public CatalogFileSystem {
 public:
  RepairFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base,
                   const std::shared_ptr<CatalogFault>& fault)
      : CatalogFileSystem(base, fault, std::make_shared<CatalogGate>()), broken_(fault) {}

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* context) override {
    const IOStatus made = broken_.Try(
        name, [&] { return CatalogFileSystem::NewWritableFile(name, options, result, context); });
    if (made.ok()) *result = std::make_unique<FailStopFile>(std::move(*result), name, broken_);
    return made;
  }

 private:
  Broken broken_;
};

/// Combines one of the file systems above, the clock of `base`, and the threads of the catalogue.
class CatalogEnv final : public rocksdb::EnvWrapper {
 public:
  CatalogEnv(rocksdb::Env& base, const std::shared_ptr<rocksdb::FileSystem>& files,
             std::shared_ptr<CatalogThreads> threads)
      : EnvWrapper(rocksdb::NewCompositeEnv(files)), threads_(std::move(threads)) {
    system_clock_ = base.GetSystemClock();
  }

  void Schedule(void (*work)(void*), void* argument, Priority priority, void* tag,
                void (*unscheduled)(void*)) override {
    threads_->Schedule(priority, work, argument, tag, unscheduled);
  }
  int UnSchedule(void* tag, Priority priority) override {
    return threads_->Unschedule(priority, tag);
  }
  unsigned int GetThreadPoolQueueLen(Priority priority) const override {
    return static_cast<unsigned int>(threads_->QueueLength(priority));
  }
  int GetBackgroundThreads(Priority priority) override { return CatalogThreads::CountOf(priority); }

  // The number of threads is fixed, and none is reserved for compactions.
  void SetBackgroundThreads(int, Priority) override {}
  void IncBackgroundThreadsIfNeeded(int, Priority) override {}
  int ReserveThreads(int, Priority) override { return 0; }
  int ReleaseThreads(int, Priority) override { return 0; }

 private:
  const std::shared_ptr<CatalogThreads> threads_;
};

}  // namespace

Status TranslateFault(const rocksdb::Status& status, const std::string& where) {
  const std::string words = status.ToString();
  std::string message = fmt::format("{}: {}", where, words);
  // RocksDB has codes for only a few system errors; the others are recognised by their messages.
  const auto says = [&](const char* what) { return words.find(what) != std::string::npos; };
  if (status.IsNoSpace() || says("File too large")) return Status::OutOfSpace(std::move(message));
  if (status.IsMemoryLimit() || says("Cannot allocate memory"))
    return Status::OutOfMemory(std::move(message));
  if (says("Permission denied") || says("Operation not permitted"))
    return Status::PermissionDenied(std::move(message));
  return Status::IoError(std::move(message));
}

void CatalogFault::Note(const std::string& file, const rocksdb::Status& status) {
  const bool of_bytes = status.IsCorruption() || status.IsNotFound() || status.IsPathNotFound();
  if (status.ok() || of_bytes) return;
  const MutexLock lock(mutex_);
  if (status_.ok()) status_ = TranslateFault(status, fmt::format("'{}'", file));
}

Status CatalogFault::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void CatalogGate::Shut() noexcept {
  shut_ = true;
  const MutexLock lock(mutex_);
  if (lock_ == nullptr) return;
  static_cast<void>(Guarded([files = files_.get(), taken = lock_] {
    static_cast<void>(files->UnlockFile(taken, {}, nullptr).ok());
    return Status::Ok();
  }));
  lock_ = nullptr;
}

void CatalogGate::Took(rocksdb::FileLock* lock, std::shared_ptr<rocksdb::FileSystem> files) {
  const MutexLock held(mutex_);
  lock_ = lock;
  files_ = std::move(files);
}

void CatalogGate::Gave(const rocksdb::FileLock* lock) {
  const MutexLock held(mutex_);
  if (lock_ == lock) lock_ = nullptr;
}

std::unique_ptr<rocksdb::Env> MakeCatalogEnv(rocksdb::Env& base,
                                             std::shared_ptr<CatalogFault> fault,
                                             std::shared_ptr<CatalogThreads> threads,
                                             std::shared_ptr<CatalogGate> gate) {
  return std::make_unique<CatalogEnv>(
      base,
      std::make_shared<CatalogFileSystem>(base.GetFileSystem(), std::move(fault), std::move(gate)),
      std::move(threads));
}

std::unique_ptr<rocksdb::Env> MakeRepairEnv(rocksdb::Env& base,
                                            std::shared_ptr<CatalogFault> fault) {
  return std::make_unique<CatalogEnv>(
      base, std::make_shared<RepairFileSystem>(base.GetFileSystem(), fault),
      std::make_shared<CatalogThreads>());  // a repair schedules no work
}

}  // namespace internal
}  // namespace rhizome
