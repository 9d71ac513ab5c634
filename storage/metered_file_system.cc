#include "rhizome/storage/metered_file_system.h"

#include <utility>

namespace rhizome {
namespace {

class MeteredReadableFile final : public ReadableFile {
 public:
  MeteredReadableFile(std::unique_ptr<ReadableFile> file, Metrics& metrics)
      : file_(std::move(file)), metrics_(metrics) {}

  Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) override {
    auto got = file_->ReadAt(offset_bytes, out);
    if (got) CountRead(*got);
    return got;
  }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  const Path& path() const override { return file_->path(); }
  int descriptor() const override { return file_->descriptor(); }
  std::uint32_t alignment_bytes() const override { return file_->alignment_bytes(); }
  void CountRead(std::size_t size_bytes) override {
    metrics_.Add(Counter::kFileReads);
    metrics_.Add(Counter::kFileReadBytes, size_bytes);
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  Metrics& metrics_;
};

class MeteredWritableFile final : public WritableFile {
 public:
  MeteredWritableFile(std::unique_ptr<WritableFile> file, Metrics& metrics)
      : file_(std::move(file)), metrics_(metrics) {}

  Status Append(std::span<const std::byte> bytes) override {
    Status status = file_->Append(bytes);
    if (status.ok()) metrics_.Add(Counter::kFileWriteBytes, bytes.size());
    return status;
  }
  Status Sync() override { return file_->Sync(); }
  Status Close() override { return file_->Close(); }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  const Path& path() const override { return file_->path(); }

 private:
  const std::unique_ptr<WritableFile> file_;
  Metrics& metrics_;
};

class MeteredFileSystem final : public FileSystem {
 public:
  MeteredFileSystem(FileSystem& base, Metrics& metrics) : base_(base), metrics_(metrics) {}

  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    RHIZOME_ASSIGN_OR_RETURN(auto file, base_.OpenRead(path, options));
    return std::make_unique<MeteredReadableFile>(std::move(file), metrics_);
  }
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override {
    return Metered(base_.CreateFile(path));
  }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const Path& path,
                                                   std::uint64_t keep_bytes) override {
    return Metered(base_.OpenAppend(path, keep_bytes));
  }
  Status CreateDirectory(const Path& path) override { return base_.CreateDirectory(path); }
  Status RemoveFile(const Path& path) override { return base_.RemoveFile(path); }
  Status RemoveDirectory(const Path& path) override { return base_.RemoveDirectory(path); }
  Status LinkFile(const Path& from, const Path& to) override { return base_.LinkFile(from, to); }
  Status SyncDirectory(const Path& path) override { return base_.SyncDirectory(path); }
  Result<std::vector<DirectoryEntry>> List(const Path& path) override { return base_.List(path); }
  Result<FileInfo> Stat(const Path& path) override { return base_.Stat(path); }
  Result<std::uint64_t> FreeBytes(const Path& path) override { return base_.FreeBytes(path); }
  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override {
    return base_.Lock(path, mode, content);
  }
  CatalogDisk* catalog_disk() override { return base_.catalog_disk(); }

 private:
  Result<std::unique_ptr<WritableFile>> Metered(Result<std::unique_ptr<WritableFile>> file) {
    if (!file) return file;
    return std::make_unique<MeteredWritableFile>(*std::move(file), metrics_);
  }

  FileSystem& base_;
  Metrics& metrics_;
};

}  // namespace

std::unique_ptr<FileSystem> MakeMeteredFileSystem(FileSystem& base, Metrics& metrics) {
  return std::make_unique<MeteredFileSystem>(base, metrics);
}

}  // namespace rhizome
