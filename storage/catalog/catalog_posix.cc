#include "storage/catalog/catalog_posix.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <rocksdb/file_system.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/catalog/catalog_manifest.h"
#include "storage/io/posix_file.h"
#include "storage/io/posix_place.h"

namespace rhizome {
inline namespace internal {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using Kind = DirectoryEntry::Kind;

// Inside RocksDB's classes the name FileSystem refers to RocksDB's class.
rhizome::FileSystem& Disk() { return rhizome::FileSystem::Posix(); }

// Translates a Status as RocksDB's own file system does: an absent file is PathNotFound.
IOStatus ToRocks(const Status& status) {
  if (status.ok()) return IOStatus::OK();
  switch (status.code()) {
    case StatusCode::kNotFound:
      return IOStatus::PathNotFound(status.message());
    case StatusCode::kOutOfSpace:
      return IOStatus::NoSpace(status.message());
    case StatusCode::kCorruption:
      return IOStatus::Corruption(status.message());
    default:
      return IOStatus::IOError(status.message());
  }
}

/// Reads up to `n` bytes; fewer only at the end of the file.
IOStatus ReadUpTo(ReadableFile& file, std::uint64_t offset, std::size_t n, Slice* result,
                  char* scratch) {
  std::size_t done = 0;
  while (done < n) {
    const auto got =
        file.ReadAt(offset + done, {reinterpret_cast<std::byte*>(scratch) + done, n - done});
    if (!got) return ToRocks(got.error());
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
    const IOStatus status = ReadUpTo(*file_, at_, n, result, scratch);
    if (status.ok()) at_ += result->size();
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

/// Returns the end of the data of a log, which is known to extend at least to `end`. A power cut
/// may leave a log that is longer than its data, with a hole at the end. Errors: kCorruption, a
/// hole of more than 64 MiB before more data, which no log has.
Result<std::uint64_t> EndOfData(const ReadableFile& file, std::uint64_t end) {
  constexpr std::uint64_t kLongestHoleBytes = std::uint64_t{64} << 20;
  while (true) {
    const off_t data = lseek(file.descriptor(), static_cast<off_t>(end), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return end;
    if (data < 0) return Fail(SystemError(errno, "look for data in", file.path()));
    if (static_cast<std::uint64_t>(data) - end > kLongestHoleBytes) {
      return Fail(Status::Corruption(
          fmt::format("'{}' has a hole of {} bytes at offset {}; logs have no holes",
                      file.path().string(), static_cast<std::uint64_t>(data) - end, end)));
    }
    const off_t hole = lseek(file.descriptor(), data, SEEK_HOLE);
    if (hole < 0) return Fail(SystemError(errno, "look for holes in", file.path()));
    end = static_cast<std::uint64_t>(hole);
  }
}

/// A log up to the end of its data. It may grow while it is being read.
class LogFile final : public rocksdb::FSSequentialFile {
 public:
  explicit LogFile(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  IOStatus Read(std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    if (end_ - at_ < n) {
      const auto end = EndOfData(*file_, end_);
      if (!end) return ToRocks(end.error());
      end_ = *end;
    }
    const IOStatus status =
        ReadUpTo(*file_, at_, std::min<std::uint64_t>(n, end_ - at_), result, scratch);
    if (status.ok()) at_ += result->size();
    return status;
  }
  IOStatus Skip(std::uint64_t) override {
    return IOStatus::NotSupported("a log is read from front to back");
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  std::uint64_t at_ = 0;
  std::uint64_t end_ = 0;
};

bool IsLog(const Path& path) { return path.extension() == ".log"; }

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    return ReadUpTo(*file_, offset, n, result, scratch);
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
};

/// A new file. RocksDB buffers its appends and preallocates blocks (Allocate); without
/// preallocation the file system would allocate blocks at each commit.
class NewFile final : public rocksdb::FSWritableFile {
 public:
  NewFile(Descriptor descriptor, Path path, const rocksdb::FileOptions& options)
      : FSWritableFile(options), descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    const auto bytes = std::as_bytes(std::span(data.data(), data.size()));
    const Status written = WriteFully(descriptor_.get(), bytes, path_, size_bytes_);
    if (written.ok()) size_bytes_ += bytes.size();
    return ToRocks(written);
  }
  IOStatus Truncate(std::uint64_t size_bytes, const IOOptions&, IODebugContext*) override {
    if (ftruncate(descriptor_.get(), static_cast<off_t>(size_bytes)) != 0) return Error("truncate");
    size_bytes_ = size_bytes;
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return fdatasync(descriptor_.get()) == 0 ? IOStatus::OK() : Error("sync");
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return fsync(descriptor_.get()) == 0 ? IOStatus::OK() : Error("sync");
  }
  bool IsSyncThreadSafe() const override { return true; }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_bytes_; }
  IOStatus Allocate(std::uint64_t offset, std::uint64_t bytes, const IOOptions&,
                    IODebugContext*) override {
    const int failed = fallocate(descriptor_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                 static_cast<off_t>(bytes));
    if (failed != 0) {
      const IOStatus error = Error("allocate");
      // A full disk may have granted part of the space; return it, as others need it.
      static_cast<void>(ftruncate(descriptor_.get(), static_cast<off_t>(size_bytes_)) == 0);
      return error;
    }
    allocated_end_ = std::max(allocated_end_, offset + bytes);
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    GiveBack();
    const int error = descriptor_.Close();
    return error == 0 ? IOStatus::OK() : ToRocks(SystemError(error, "close", path_));
  }

 private:
  IOStatus Error(std::string_view operation) const {
    return ToRocks(SystemError(errno, operation, path_));
  }

  /// Returns space that was allocated and not used. Errors are ignored: the space is freed with the
  /// file.
  void GiveBack() const {
    if (allocated_end_ <= size_bytes_) return;
    static_cast<void>(ftruncate(descriptor_.get(), static_cast<off_t>(size_bytes_)) == 0 &&
                      fallocate(descriptor_.get(), FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE,
                                static_cast<off_t>(size_bytes_),
                                static_cast<off_t>(allocated_end_ - size_bytes_)) == 0);
  }

  Descriptor descriptor_;
  const Path path_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t allocated_end_ = 0;
};

class Folder final : public rocksdb::FSDirectory {
 public:
  explicit Folder(Path path) : path_(std::move(path)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return ToRocks(Disk().SyncDirectory(path_));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  const Path path_;
};

/// Returns the max length of a file that RocksDB reads as a whole; no limit (UINT64_MAX) for logs
/// and tables, which it reads in blocks.
std::uint64_t MostBytes(const Path& path) {
  constexpr std::uint64_t kSmallBytes = std::uint64_t{1} << 20;
  const std::string name = path.filename().string();
  if (name.starts_with("MANIFEST-")) return kMaxCatalogManifestBytes;
  return name.ends_with(".log") || name.ends_with(".sst") ? UINT64_MAX : kSmallBytes;
}

Result<std::unique_ptr<ReadableFile>> OpenBounded(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto file, Disk().OpenRead(path));
  const std::uint64_t most = MostBytes(path);
  if (file->size_bytes() <= most) return file;
  return Fail(Status::Corruption(
      fmt::format("'{}' has {} bytes, but RocksDB's files of this kind have at most {}",
                  path.string(), file->size_bytes(), most)));
}

/// Checks that `path` is absent or a regular file.
Status CheckFileOrAbsent(const Path& path) {
  const auto info = Disk().Stat(path);
  if (!info) return info.error().code() == StatusCode::kNotFound ? Status::Ok() : info.error();
  return info->kind == Kind::kFile ? Status::Ok() : NotRegular(path);
}

/// Creates the lock file if it is absent, with the mode that the umask allows: RocksDB would use
/// mode 644, so that only one user could write to a store that a group shares. An existing file is
/// not opened, because closing it would release a lock of this process on it.
Status MakeForAll(const Path& path) {
  const auto made = OpenDescriptor(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create");
  const bool there = !made && made.error().code() == StatusCode::kAlreadyExists;
  return made || there ? Status::Ok() : made.error();
}

/// Performs RocksDB's file operations through FileSystem::Posix(), with these differences from
/// RocksDB's own file system: files that RocksDB reads as a whole have bounded lengths
/// (OpenBounded), a log ends with its data (LogFile), a new file replaces an old one instead of
/// truncating it, and operations that our options do not need are not supported.
class PosixCatalogFiles final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "RhizomePosixCatalogFiles"; }

  IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override {
    auto file = OpenBounded(name);
    // RocksDB asserts that IDENTITY is absent or fails to be read: Corruption, for something that
    // is not a file or is far too large, would violate that assertion.
    if (!file && Path(name).filename() == "IDENTITY" &&
        file.error().code() == StatusCode::kCorruption)
      return IOStatus::IOError(file.error().message());
    if (!file) return ToRocks(file.error());
    if (IsLog(name))
      *result = std::make_unique<LogFile>(*std::move(file));
    else
      *result = std::make_unique<SequentialFile>(*std::move(file));
    return IOStatus::OK();
  }
  IOStatus NewRandomAccessFile(const std::string& name, const rocksdb::FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override {
    auto file = Disk().OpenRead(name);
    if (!file) return ToRocks(file.error());
    *result = std::make_unique<RandomAccessFile>(*std::move(file));
    return IOStatus::OK();
  }
  // RocksDB's own file system truncates an existing file. Here the file is removed and created
  // again, as it may have another name (a hard link) that is in use.
  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext*) override {
    const Path path = name;
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    auto file = OpenDescriptor(path, kFlags, "create");
    if (!file && file.error().code() == StatusCode::kAlreadyExists) {
      Status removed = CheckFileOrAbsent(path);
      if (removed.ok()) removed = Disk().RemoveFile(path);
      if (!removed.ok()) return ToRocks(removed);
      file = OpenDescriptor(path, kFlags, "create");
    }
    if (!file) return ToRocks(file.error());
    *result = std::make_unique<NewFile>(*std::move(file), path, options);
    return IOStatus::OK();
  }
  // With our options RocksDB never calls the next three.
  IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions&,
                              std::unique_ptr<rocksdb::FSWritableFile>*, IODebugContext*) override {
    return IOStatus::NotSupported("files are not opened for appending", name);
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string&,
                             const rocksdb::FileOptions&, std::unique_ptr<rocksdb::FSWritableFile>*,
                             IODebugContext*) override {
    return IOStatus::NotSupported("files are not overwritten", name);
  }
  IOStatus NewRandomRWFile(const std::string& name, const rocksdb::FileOptions&,
                           std::unique_ptr<rocksdb::FSRandomRWFile>*, IODebugContext*) override {
    return IOStatus::NotSupported("files are not opened for random writes", name);
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) override {
    const auto there = Disk().List(name);
    if (!there) return ToRocks(there.error());
    *result = std::make_unique<Folder>(name);
    return IOStatus::OK();
  }

  IOStatus FileExists(const std::string& name, const IOOptions&, IODebugContext*) override {
    const auto info = Disk().Stat(name);
    if (info) return IOStatus::OK();
    // RocksDB asserts that this call has no other errors.
    return info.error().code() == StatusCode::kNotFound ? IOStatus::NotFound()
                                                        : IOStatus::IOError(info.error().message());
  }
  IOStatus GetChildren(const std::string& name, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    result->clear();
    const auto entries = Disk().List(name);
    if (!entries) return ToRocks(entries.error());
    for (const DirectoryEntry& entry : *entries) result->push_back(entry.name);
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) override {
    return ToRocks(Disk().RemoveFile(name));
  }
  IOStatus CreateDir(const std::string& name, const IOOptions&, IODebugContext*) override {
    return ToRocks(Disk().CreateDirectory(name));
  }
  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions&, IODebugContext*) override {
    const Status made = Disk().CreateDirectory(name);
    if (made.code() != StatusCode::kAlreadyExists) return ToRocks(made);
    const auto there = Disk().List(name);
    return there ? IOStatus::OK() : ToRocks(there.error());
  }
  IOStatus DeleteDir(const std::string& name, const IOOptions&, IODebugContext*) override {
    return ToRocks(Disk().RemoveDirectory(name));
  }
  IOStatus GetFileSize(const std::string& name, const IOOptions&, std::uint64_t* size,
                       IODebugContext*) override {
    const auto info = Disk().Stat(name);
    if (!info) return ToRocks(info.error());
    if (info->kind == Kind::kOther) return ToRocks(NotRegular(name));
    *size = info->size_bytes;
    if (!IsLog(name)) return IOStatus::OK();
    const auto file = Disk().OpenRead(name);
    if (!file) return ToRocks(file.error());
    const auto end = EndOfData(**file, 0);
    if (end) *size = *end;
    return end ? IOStatus::OK() : ToRocks(end.error());
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    const auto source = Place::Find(from, "move");
    if (!source) return ToRocks(source.error());
    const auto target = Place::Find(to, "move to");
    if (!target) return ToRocks(target.error());
    if (renameat(source->folder(), source->name(), target->folder(), target->name()) == 0)
      return IOStatus::OK();
    return ToRocks(target->Error(errno, "move to"));
  }
  IOStatus LockFile(const std::string& name, const IOOptions& options, rocksdb::FileLock** lock,
                    IODebugContext* context) override {
    const Status plain = CheckFileOrAbsent(name);
    if (!plain.ok()) return ToRocks(plain);
    const Status made = MakeForAll(name);
    return made.ok() ? target()->LockFile(name, options, lock, context) : ToRocks(made);
  }
};

}  // namespace

rocksdb::Env& PosixCatalogEnv() {
  static auto* const env =
      rocksdb::NewCompositeEnv(std::make_shared<PosixCatalogFiles>(rocksdb::FileSystem::Default()))
          .release();
  return *env;
}

}  // namespace internal
}  // namespace rhizome
