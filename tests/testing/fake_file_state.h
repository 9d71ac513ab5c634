#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"
#include "storage/base/mutex.h"
#include "testing/fake_file_system.h"

namespace rhizome::testing {

// The state that FakeFileSystem shares with the files that it opens. Private to tests/testing/.

struct FakeNode;
using NodePtr = std::shared_ptr<FakeNode>;
using FakeNames = std::map<std::string, NodePtr>;

/// A change of a file that is not durable yet. The file is truncated to `offset_bytes` if `cut`,
/// then written.
struct FakeWrite {
  std::uint64_t operation = 0;
  std::uint64_t offset_bytes = 0;
  std::vector<std::byte> bytes;
  bool cut = false;
};

/// The change of a directory's names by one operation that is not durable yet.
struct FakeNaming {
  bool replaces = false;  ///< a removal or a move, by which names disappear
  FakeNames names;        ///< null: the name disappears
};

/// A file or a directory. Several names may refer to one node (links). A node has its current
/// contents, its durable contents, and the changes between them, oldest first.
struct FakeNode {
  bool is_directory = false;

  // Used for a file.
  std::vector<std::byte> bytes;
  std::vector<std::byte> durable_bytes;
  std::vector<FakeWrite> unsynced;
  int shared_locks = 0;
  bool exclusive_lock = false;

  // Used for a directory.
  FakeNames names;
  FakeNames durable_names;
  std::vector<FakeNaming> unsynced_names;

  void Write(FakeWrite write);
  void Rename(FakeNaming naming);
  void MakeDurable();
};

inline NodePtr MakeDirectory() {
  auto node = std::make_shared<FakeNode>();
  node->is_directory = true;
  return node;
}

/// Returns the components of `path` from the root.
std::vector<std::string> FakeComponents(const Path& path);

std::string_view FakeOperationName(FakeFileSystem::Operation operation);

Status FakeErrno(int error, std::string_view operation, const Path& path);

/// Changes a directory, and everything below it, to its state after a crash.
void CrashTree(FakeNode& directory, FakeFileSystem::CrashMode mode, std::uint64_t seed);

/// Copies a tree. Names that share a node share one in the copy.
NodePtr CopyTree(const NodePtr& root);

struct FakeFileSystem::State {
  /// Counts an operation and returns its error number if it is to fail, else 0.
  int Count(Operation operation, const Path& path) RHIZOME_REQUIRES(mutex) {
    trace.push_back(fmt::format("{} {}", FakeOperationName(operation), path.string()));
    if (recording && FakeFileSystem::Changes(operation)) {
      points.push_back({operations, trace.back(), acknowledged, begun, {CopyTree(root)}});
    }
    const std::uint64_t number = operations++;
    if (fail_error != 0 && (number == fail_at || (fail_sticky && number > fail_at)))
      return fail_error;
    if (fail_when && fail_when(operation, path)) return fail_when_error;
    return 0;
  }

  static inline std::function<bool(const Path&)> lies_about;

  Status Begin(Operation operation, const Path& path) RHIZOME_REQUIRES(mutex) {
    const int error = Count(operation, path);
    if (error <= 0) return {};
    return FakeErrno(error, FakeOperationName(operation), path);
  }

  NodePtr Find(const std::vector<std::string>& parts, std::size_t count) RHIZOME_REQUIRES(mutex) {
    NodePtr node = root;
    for (std::size_t i = 0; i < count; ++i) {
      if (!node->is_directory) return nullptr;
      const auto found = node->names.find(parts[i]);
      if (found == node->names.end()) return nullptr;
      node = found->second;
    }
    return node;
  }
  NodePtr Find(const Path& path) RHIZOME_REQUIRES(mutex) {
    const auto parts = FakeComponents(path);
    return Find(parts, parts.size());
  }

  /// Returns the parent directory of `path`, and its last component.
  Result<std::pair<NodePtr, std::string>> Parent(const Path& path, std::string_view operation)
      RHIZOME_REQUIRES(mutex) {
    const auto parts = FakeComponents(path);
    if (parts.empty()) return Fail(FakeErrno(EEXIST, operation, path));
    NodePtr parent = Find(parts, parts.size() - 1);
    if (parent == nullptr || !parent->is_directory) return Fail(FakeErrno(ENOENT, operation, path));
    return std::pair(std::move(parent), parts.back());
  }

  Result<NodePtr> FindFile(const Path& path, std::string_view operation) RHIZOME_REQUIRES(mutex) {
    NodePtr node = Find(path);
    if (node == nullptr) return Fail(FakeErrno(ENOENT, operation, path));
    if (node->is_directory) return Fail(FakeErrno(EISDIR, operation, path));
    return node;
  }

  Result<NodePtr> FindDirectory(const Path& path, std::string_view operation)
      RHIZOME_REQUIRES(mutex) {
    NodePtr node = Find(path);
    if (node == nullptr || !node->is_directory) return Fail(FakeErrno(ENOENT, operation, path));
    return node;
  }

  std::uint64_t LinkCount(const FakeNode* node, const FakeNode& below) RHIZOME_REQUIRES(mutex) {
    std::uint64_t count = 0;
    for (const auto& [name, child] : below.names) {
      count += child.get() == node ? 1 : 0;
      if (child->is_directory) count += LinkCount(node, *child);
    }
    return count;
  }

  mutable Mutex mutex;
  NodePtr root RHIZOME_GUARDED_BY(mutex) = MakeDirectory();
  std::uint64_t epoch RHIZOME_GUARDED_BY(mutex) = 0;  // crashes so far
  std::uint64_t operations RHIZOME_GUARDED_BY(mutex) = 0;
  int locks RHIZOME_GUARDED_BY(mutex) = 0;  // currently held
  std::vector<std::string> trace RHIZOME_GUARDED_BY(mutex);
  std::uint64_t fail_at RHIZOME_GUARDED_BY(mutex) = 0;
  int fail_error RHIZOME_GUARDED_BY(mutex) = 0;
  bool fail_sticky RHIZOME_GUARDED_BY(mutex) = false;
  std::function<bool(Operation, const Path&)> fail_when RHIZOME_GUARDED_BY(mutex);
  int fail_when_error RHIZOME_GUARDED_BY(mutex) = 0;
  bool refuse_links RHIZOME_GUARDED_BY(mutex) = false;
  std::uint64_t free_bytes RHIZOME_GUARDED_BY(mutex) = std::uint64_t{1} << 40;
  std::uint32_t direct_alignment RHIZOME_GUARDED_BY(mutex) = 1;
  bool recording RHIZOME_GUARDED_BY(mutex) = false;
  int acknowledged RHIZOME_GUARDED_BY(mutex) = 0;
  int begun RHIZOME_GUARDED_BY(mutex) = 0;
  std::vector<FakeCrashPoint> points RHIZOME_GUARDED_BY(mutex);
};

std::unique_ptr<ReadableFile> MakeFakeReadable(const std::shared_ptr<FakeFileSystem::State>& state,
                                               NodePtr node, Path path,
                                               std::uint32_t alignment_bytes)
    RHIZOME_REQUIRES(state->mutex);
std::unique_ptr<WritableFile> MakeFakeWritable(const std::shared_ptr<FakeFileSystem::State>& state,
                                               NodePtr node, Path path)
    RHIZOME_REQUIRES(state->mutex);
std::unique_ptr<UpdatableFile> MakeFakeUpdatable(
    const std::shared_ptr<FakeFileSystem::State>& state, NodePtr node, Path path,
    std::uint32_t alignment_bytes) RHIZOME_REQUIRES(state->mutex);
std::unique_ptr<FileLock> MakeFakeLock(const std::shared_ptr<FakeFileSystem::State>& state,
                                       NodePtr node, bool exclusive) RHIZOME_REQUIRES(state->mutex);

}  // namespace rhizome::testing
