// Implements RocksDB's file system on a FakeFileSystem: adapters for files, directories and locks,
// RocksFileSystem, which maps each call to one of the disk, and an Env with a clock that does not
// sleep.

#include "reliability/harness/rocks_disk.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <cstring>
#include <thread>
#include <utility>

#include "rhizome/file_system.h"
#include "storage/base/logger.h"

namespace rhizome::testing {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Translates errors as RocksDB's own file system does: an absent file is PathNotFound.
IOStatus Translate(const Status& status) {
  if (status.ok()) return IOStatus::OK();
  switch (status.code()) {
    case StatusCode::kNotFound:
      return IOStatus::PathNotFound(status.message());
    case StatusCode::kOutOfSpace:
      return IOStatus::NoSpace(status.message());
    default:
      return IOStatus::IOError(status.message());
  }
}

// Reads as RocksDB's own files do: continues after a short read; an empty read is the end.
IOStatus ReadAll(ReadableFile& file, std::uint64_t offset, std::size_t n, Slice* result,
                 char* scratch) {
  std::size_t done = 0;
  *result = Slice(scratch, 0);
  while (done < n) {
    const auto got =
        file.ReadAt(offset + done, {reinterpret_cast<std::byte*>(scratch) + done, n - done});
    if (!got) return Translate(got.error());
    if (*got == 0) break;
    done += *got;
  }
  *result = Slice(scratch, done);
  return IOStatus::OK();
}

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  explicit SequentialFile(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  IOStatus Read(std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    const IOStatus status = ReadAll(*file_, at_, n, result, scratch);
    at_ += result->size();
    return status;
  }
  IOStatus Skip(std::uint64_t n) override {
    at_ += n;
    return IOStatus::OK();
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  std::uint64_t at_ = 0;
};

class RandomFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomFile(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    return ReadAll(*file_, offset, n, result, scratch);
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
};

class AppendFile final : public rocksdb::FSWritableFile {
 public:
  explicit AppendFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    return Translate(file_->Append(std::as_bytes(std::span(data.data(), data.size()))));
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return Translate(file_->Sync()); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return Translate(file_->Close()); }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    return file_->size_bytes();
  }

 private:
  const std::unique_ptr<WritableFile> file_;
};

class Directory final : public rocksdb::FSDirectory {
 public:
  Directory(FakeFileSystem& disk, std::string name) : disk_(disk), name_(std::move(name)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return Translate(disk_.SyncDirectory(name_));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  FakeFileSystem& disk_;
  const std::string name_;
};

class HeldLock final : public rocksdb::FileLock {
 public:
  explicit HeldLock(std::unique_ptr<rhizome::FileLock> lock) : lock_(std::move(lock)) {}

 private:
  const std::unique_ptr<rhizome::FileLock> lock_;
};

class RocksFileSystem final : public rocksdb::FileSystem {
 public:
  explicit RocksFileSystem(FakeFileSystem& disk) : disk_(disk) {}
  const char* Name() const override { return "FakeFileSystem"; }

  IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override {
    auto file = disk_.OpenRead(name);
    if (!file) return Translate(file.error());
    *result = std::make_unique<SequentialFile>(*std::move(file));
    return IOStatus::OK();
  }
  IOStatus NewRandomAccessFile(const std::string& name, const rocksdb::FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override {
    auto file = disk_.OpenRead(name);
    if (!file) return Translate(file.error());
    *result = std::make_unique<RandomFile>(*std::move(file));
    return IOStatus::OK();
  }
  // RocksDB truncates an existing file of this name, which is equivalent to a new file.
  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext*) override {
    auto file = disk_.CreateFile(name);
    if (!file && file.error().code() == StatusCode::kAlreadyExists) {
      if (const Status removed = disk_.RemoveFile(name); !removed.ok()) return Translate(removed);
      file = disk_.CreateFile(name);
    }
    if (!file) return Translate(file.error());
    *result = std::make_unique<AppendFile>(*std::move(file));
    return IOStatus::OK();
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) override {
    *result = std::make_unique<Directory>(disk_, name);
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& name, const IOOptions&, IODebugContext*) override {
    const auto info = disk_.Stat(name);
    if (!info && info.error().code() == StatusCode::kNotFound) return IOStatus::NotFound();
    return Translate(info ? Status::Ok() : info.error());
  }
  IOStatus GetChildren(const std::string& name, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    const auto entries = disk_.List(name);
    if (!entries && entries.error().code() == StatusCode::kNotFound) return IOStatus::NotFound();
    if (!entries) return Translate(entries.error());
    result->clear();
    for (const DirectoryEntry& entry : *entries) result->push_back(entry.name);
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) override {
    return Translate(disk_.RemoveFile(name));
  }
  IOStatus CreateDir(const std::string& name, const IOOptions&, IODebugContext*) override {
    return Translate(disk_.CreateDirectory(name));
  }
  // Also creates the parent folders: a reader's own files are in the temporary folder, which the
  // fake disk lacks.
  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions& options,
                              IODebugContext* context) override {
    const Path parent = Path(name).lexically_normal().parent_path();
    if (parent.has_relative_path() && !disk_.Stat(parent)) {
      const IOStatus made = CreateDirIfMissing(parent, options, context);
      if (!made.ok()) return made;
    }
    const Status made = disk_.CreateDirectory(name);
    return made.code() == StatusCode::kAlreadyExists ? IOStatus::OK() : Translate(made);
  }
  IOStatus DeleteDir(const std::string& name, const IOOptions&, IODebugContext*) override {
    return Translate(disk_.RemoveDirectory(name));
  }
  IOStatus GetFileSize(const std::string& name, const IOOptions&, std::uint64_t* size,
                       IODebugContext*) override {
    const auto info = disk_.Stat(name);
    if (!info) return Translate(info.error());
    *size = info->size_bytes;
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, std::uint64_t* time,
                                   IODebugContext*) override {
    *time = 0;
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    return Translate(disk_.RenameFile(from, to));
  }
  IOStatus LockFile(const std::string& name, const IOOptions&, rocksdb::FileLock** lock,
                    IODebugContext*) override {
    auto held = disk_.Lock(name, FakeFileSystem::LockMode::kExclusive, "");
    if (!held) return Translate(held.error());
    *lock = new HeldLock(*std::move(held));
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    delete lock;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string*, IODebugContext*) override {
    return IOStatus::NotSupported("no folder for tests");
  }
  IOStatus NewLogger(const std::string&, const IOOptions&, std::shared_ptr<rocksdb::Logger>*,
                     IODebugContext*) override {
    return IOStatus::NotSupported("the store's logger is used");
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* result,
                           IODebugContext*) override {
    *result = path;
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string& name, const IOOptions&, std::uint64_t* bytes,
                        IODebugContext*) override {
    const auto left = disk_.FreeBytes(name);
    if (!left) return Translate(left.error());
    *bytes = *left;
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& name, const IOOptions&, bool* is,
                       IODebugContext*) override {
    const auto info = disk_.Stat(name);
    if (!info) return Translate(info.error());
    *is = info->kind == DirectoryEntry::Kind::kDirectory;
    return IOStatus::OK();
  }

 private:
  FakeFileSystem& disk_;
};

/// A clock that does not sleep. After an error of its background work, RocksDB would sleep for a
/// second in vain.
class ImpatientClock final : public rocksdb::SystemClockWrapper {
 public:
  ImpatientClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "ImpatientClock"; }
  void SleepForMicroseconds(int) override { std::this_thread::yield(); }
};

class RocksEnv final : public rocksdb::EnvWrapper {
 public:
  explicit RocksEnv(FakeFileSystem& disk)
      : EnvWrapper(rocksdb::NewCompositeEnv(std::make_shared<RocksFileSystem>(disk))) {
    system_clock_ = std::make_shared<ImpatientClock>();
  }
};

class RocksDisk final : public CatalogDisk {
 public:
  explicit RocksDisk(FakeFileSystem& disk) : env_(std::make_unique<RocksEnv>(disk)) {}
  rocksdb::Env& env() override { return *env_; }

 private:
  const std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace

std::unique_ptr<CatalogDisk> MakeRocksDisk(FakeFileSystem& disk) {
  return std::make_unique<RocksDisk>(disk);
}

}  // namespace rhizome::testing
