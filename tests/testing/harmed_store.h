#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/io/forwarding_file_system.h"

// Tools that damage the store of storage/array_fixture.h and its environment, for the checks in
// testing/care.h.

namespace rhizome::testing {

constexpr const char* kRows = "generations/000001/arrays/feat/c.0.0";

inline FileSystem& Disk() { return FileSystem::Posix(); }

/// A file system that calls a function before operations. The function may make an operation fail.
class Watched final : public ForwardingFileSystem {
 public:
  using Watch = std::function<Status(const Path& path)>;
  explicit Watched(Watch watch) : ForwardingFileSystem(Disk()), watch_(std::move(watch)) {}

  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    RHIZOME_RETURN_IF_ERROR(watch_(path));
    return ForwardingFileSystem::OpenRead(path, options);
  }
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override {
    RHIZOME_RETURN_IF_ERROR(watch_(path));
    return ForwardingFileSystem::CreateFile(path);
  }
  Result<std::vector<DirectoryEntry>> List(const Path& path) override {
    RHIZOME_RETURN_IF_ERROR(watch_(path));
    return ForwardingFileSystem::List(path);
  }
  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override {
    RHIZOME_RETURN_IF_ERROR(watch_(path));
    return ForwardingFileSystem::Lock(path, mode, content);
  }

 private:
  const Watch watch_;
};

inline std::string BytesOf(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns all files below a folder except LOCK, which contains the name of its last holder.
inline std::map<std::string, std::string> Tree(const Path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != "LOCK")
      files[entry.path().lexically_relative(folder)] = BytesOf(entry.path());
  return files;
}

inline void Change(const Path& path, std::initializer_list<std::size_t> places) {
  std::string bytes = BytesOf(path);
  for (const std::size_t at : places) bytes.at(at) = static_cast<char>(bytes.at(at) ^ 0x5a);
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace rhizome::testing
