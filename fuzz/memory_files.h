#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"

namespace rhizome::fuzzing {

/// A read-only file system of files in memory. All other operations fail.
class MemoryFiles final : public FileSystem {
 public:
  using FileSystem::OpenRead;

  std::map<Path, std::vector<std::byte>> files;

  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path, const ReadOptions&) override {
    const auto file = files.find(path);
    if (file == files.end()) return Fail(Status::NotFound(path.string()));
    return std::make_unique<File>(path, file->second);
  }
  Result<FileInfo> Stat(const Path& path) override {
    const auto file = files.find(path);
    if (file == files.end()) return Fail(Status::NotFound(path.string()));
    return FileInfo{.kind = DirectoryEntry::Kind::kFile, .size_bytes = file->second.size()};
  }

  Result<std::unique_ptr<WritableFile>> CreateFile(const Path&) override { return Fail(No()); }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const Path&, std::uint64_t) override {
    return Fail(No());
  }
  Status CreateDirectory(const Path&) override { return No(); }
  Status RemoveFile(const Path&) override { return No(); }
  Status RemoveDirectory(const Path&) override { return No(); }
  Status LinkFile(const Path&, const Path&) override { return No(); }
  Status SyncDirectory(const Path&) override { return No(); }
  Result<std::vector<DirectoryEntry>> List(const Path&) override { return Fail(No()); }
  Result<std::uint64_t> FreeBytes(const Path&) override { return Fail(No()); }
  Result<std::unique_ptr<FileLock>> Lock(const Path&, LockMode, std::string_view) override {
    return Fail(No());
  }

 private:
  class File final : public ReadableFile {
   public:
    File(Path path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}
    Result<std::size_t> ReadAt(std::uint64_t offset, std::span<std::byte> out) override {
      const std::size_t from = std::min<std::uint64_t>(offset, bytes_.size());
      const std::size_t count = std::min(out.size(), bytes_.size() - from);
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(from), count, out.begin());
      return count;
    }
    std::uint64_t size_bytes() const override { return bytes_.size(); }
    const Path& path() const override { return path_; }

   private:
    const Path path_;
    const std::span<const std::byte> bytes_;
  };

  static Status No() { return Status::Unsupported("files in memory are only read"); }
};

}  // namespace rhizome::fuzzing
