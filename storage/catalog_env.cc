#include "rhizome/storage/catalog_env.h"

#include <fmt/format.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/storage/catalog_log.h"
#include "rhizome/storage/catalog_table.h"
#include "rhizome/storage/mutant.h"

namespace rhizome {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

/// A log up to its last whole record: what a power cut left behind that is no error and is not
/// shown, whether the reader would pass over it or not; damage is an error that the reader cannot
/// overlook. A log may grow while it is read (by another process), and then shows more.
class WholeRecords final : public rocksdb::FSSequentialFile {
 public:
  /// `file_bytes`: at least as long is the file.
  WholeRecords(std::unique_ptr<rocksdb::FSSequentialFile> file, std::string name,
               std::uint64_t file_bytes)
      : file_(std::move(file)), name_(std::move(name)), file_bytes_(file_bytes) {}

  IOStatus Read(std::size_t size, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                IODebugContext* context) override {
    if (at_ == good_) {
      const IOStatus more = ReadMore(options, context);
      if (!more.ok()) return more;
    }
    const std::size_t count = std::min<std::size_t>(size, good_ - at_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, scratch);
    at_ += count;
    *result = rocksdb::Slice(scratch, count);
    return IOStatus::OK();
  }
  IOStatus Skip(std::uint64_t) override {
    return IOStatus::NotSupported("a log is read from front to back");
  }

 private:
  // To the end of the file, at once: RocksDB takes a read that is short for the end of the log, and
  // would neither see what follows nor hear that it is damaged.
  IOStatus ReadMore(const IOOptions& options, IODebugContext* context) {
    DropShown();
    rocksdb::Slice got;
    do {
      std::vector<char> piece(kPieceBytes);
      const IOStatus read = file_->Read(piece.size(), options, &got, piece.data(), context);
      if (!read.ok()) return read;
      bytes_.insert(bytes_.end(), got.data(), got.data() + got.size());
    } while (!got.empty());
    if (base_ + bytes_.size() < file_bytes_)
      return IOStatus::Corruption(fmt::format("{}: ends at offset {}, but is {} bytes long", name_,
                                              base_ + bytes_.size(), file_bytes_));
    const LogScan scan = ScanLog(std::as_bytes(std::span(bytes_)), good_, last_change_);
    good_ = scan.good_bytes;
    last_change_ = scan.last_change;
    if (!scan.damaged) return IOStatus::OK();
    return IOStatus::Corruption(
        fmt::format("{}: the record at offset {} is damaged", name_, base_ + good_));
  }

  void DropShown() {
    const std::uint64_t shown = at_ / kLogBlockBytes * kLogBlockBytes;
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(shown));
    base_ += shown;
    at_ -= shown;
    good_ -= shown;
  }

  static constexpr std::size_t kPieceBytes = std::size_t{8} * kLogBlockBytes;

  const std::unique_ptr<rocksdb::FSSequentialFile> file_;
  const std::string name_;
  const std::uint64_t file_bytes_;
  std::vector<char> bytes_;  // of the file from base_ on, where a block begins
  std::uint64_t base_ = 0;
  std::uint64_t at_ = 0;           // shown, from base_
  std::uint64_t good_ = 0;         // whole, from base_
  std::uint64_t last_change_ = 0;  // in what is whole
};

IOStatus ToRocks(const Status& status, const std::string& name) {
  const std::string message = fmt::format("{}: {}", name, status.message());
  return status.code() == StatusCode::kCorruption ? IOStatus::Corruption(message)
                                                  : IOStatus::IOError(message);
}

/// See CheckTableTail.
IOStatus CheckTable(const rocksdb::FSRandomAccessFile& file, std::uint64_t file_bytes,
                    const std::string& name, IODebugContext* context) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    auto* const scratch = reinterpret_cast<char*>(out.data());
    rocksdb::Slice got;
    const IOStatus status = file.Read(offset, out.size(), {}, &got, scratch, context);
    if (!status.ok()) return Status::IoError(status.ToString());
    if (got.size() != out.size()) return Status::Corruption("the table is cut off");
    if (got.data() != scratch) std::copy_n(got.data(), got.size(), scratch);
    return Status::Ok();
  };
  const Status checked = CheckTableTail(file_bytes, read);
  return checked.ok() ? IOStatus::OK() : ToRocks(checked, name);
}

bool IsLog(const std::filesystem::path& path) {
  return path.extension() == ".log" || path.filename().native().starts_with("MANIFEST-");
}

class CatalogFileSystem : public rocksdb::FileSystemWrapper {
 public:
  CatalogFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base,
                    std::shared_ptr<CatalogFault> fault)
      : FileSystemWrapper(base), fault_(std::move(fault)) {}
  const char* Name() const override { return "RhizomeCatalogFileSystem"; }

  IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* context) override {
    const IOStatus opened = target()->NewSequentialFile(name, options, result, context);
    if (!opened.ok() || !IsLog(name)) return Noted(name, opened);
    std::uint64_t file_bytes = 0;
    const IOStatus stat = SizeOf(name, &file_bytes, context);
    if (file_bytes == kRemoved) file_bytes = 0;
    if (stat.ok()) *result = std::make_unique<WholeRecords>(std::move(*result), name, file_bytes);
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
    return Noted(name, CheckTable(**result, file_bytes, name, context));
  }

  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* context) override {
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

  /// Of a file that was opened; kRemoved if a writer removed it meanwhile, which is no error.
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
};

/// Stops writing at the first fault. Threads: many at once.
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
      : CatalogFileSystem(base, fault), broken_(fault) {}

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

/// One of our file systems, and the base's clock.
class CatalogEnv final : public rocksdb::EnvWrapper {
 public:
  CatalogEnv(rocksdb::Env& base, const std::shared_ptr<rocksdb::FileSystem>& files)
      : EnvWrapper(rocksdb::NewCompositeEnv(files)) {
    system_clock_ = base.GetSystemClock();
  }
};

}  // namespace

Status TranslateFault(const rocksdb::Status& status, const std::string& where) {
  const std::string words = status.ToString();
  std::string message = fmt::format("{}: {}", where, words);
  // RocksDB has codes for few of the system's errors, and words for the others.
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

std::unique_ptr<rocksdb::Env> MakeCatalogEnv(rocksdb::Env& base,
                                             std::shared_ptr<CatalogFault> fault) {
  return std::make_unique<CatalogEnv>(
      base, std::make_shared<CatalogFileSystem>(base.GetFileSystem(), std::move(fault)));
}

std::unique_ptr<rocksdb::Env> MakeRepairEnv(rocksdb::Env& base,
                                            std::shared_ptr<CatalogFault> fault) {
  return std::make_unique<CatalogEnv>(
      base, std::make_shared<RepairFileSystem>(base.GetFileSystem(), fault));
}

}  // namespace rhizome
