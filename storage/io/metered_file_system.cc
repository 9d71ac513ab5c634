#include "storage/io/metered_file_system.h"

#include <utility>

#include "storage/io/forwarding_file_system.h"
#include "storage/io/updatable_file.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Counts the reads of a ReadableFile or UpdatableFile.
template <typename File>
class MeteredReads : public File {
 public:
  MeteredReads(std::unique_ptr<File> file, Metrics& metrics)
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

 protected:
  const std::unique_ptr<File> file_;
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

class MeteredUpdatableFile final : public MeteredReads<UpdatableFile> {
 public:
  using MeteredReads::MeteredReads;

  Status WriteAt(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
    Status status = file_->WriteAt(offset_bytes, bytes);
    if (status.ok()) metrics_.Add(Counter::kFileWriteBytes, bytes.size());
    return status;
  }
  Status Sync() override { return file_->Sync(); }
};

class MeteredFileSystem final : public ForwardingFileSystem, public UpdatableFiles {
 public:
  MeteredFileSystem(FileSystem& base, Metrics& metrics)
      : ForwardingFileSystem(base), metrics_(metrics) {}

  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    RHIZOME_ASSIGN_OR_RETURN(auto file, base().OpenRead(path, options));
    return std::make_unique<MeteredReads<ReadableFile>>(std::move(file), metrics_);
  }
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override {
    return Metered(base().CreateFile(path));
  }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const Path& path,
                                                   std::uint64_t keep_bytes) override {
    return Metered(base().OpenAppend(path, keep_bytes));
  }
  Result<std::unique_ptr<UpdatableFile>> OpenUpdatable(const Path& path, std::uint64_t size_bytes,
                                                       const ReadOptions& options) override {
    RHIZOME_ASSIGN_OR_RETURN(auto file, rhizome::OpenUpdatable(base(), path, size_bytes, options));
    return std::make_unique<MeteredUpdatableFile>(std::move(file), metrics_);
  }

 private:
  Result<std::unique_ptr<WritableFile>> Metered(Result<std::unique_ptr<WritableFile>> file) {
    if (!file) return file;
    return std::make_unique<MeteredWritableFile>(*std::move(file), metrics_);
  }

  Metrics& metrics_;
};

}  // namespace

std::unique_ptr<FileSystem> MakeMeteredFileSystem(FileSystem& base, Metrics& metrics) {
  return std::make_unique<MeteredFileSystem>(base, metrics);
}

}  // namespace internal
}  // namespace rhizome
