#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {

/// Forwards every call to another file system. A base class for wrappers that change only a few
/// calls.
/// Ownership: `base` must outlive it.
class ForwardingFileSystem : public FileSystem {
 public:
  explicit ForwardingFileSystem(FileSystem& base) : base_(base) {}

  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    return base_.OpenRead(path, options);
  }
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override {
    return base_.CreateFile(path);
  }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const Path& path,
                                                   std::uint64_t keep_bytes) override {
    return base_.OpenAppend(path, keep_bytes);
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
  std::shared_ptr<FolderEnclosure> Enclose(const Path& root) override {
    return base_.Enclose(root);
  }
  CatalogDisk* catalog_disk() override { return base_.catalog_disk(); }

 protected:
  FileSystem& base() { return base_; }

 private:
  FileSystem& base_;
};

}  // namespace internal
}  // namespace rhizome
