#include "testing/fake_file_system.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <utility>

#include "rhizome/file_system.h"
#include "storage/base/mutex.h"
#include "testing/fake_file_state.h"

// Implementation of the in-memory file system. Each file operation
//   1. locks the shared state (fake_file_state.h),
//   2. counts the operation, records it in the trace, and fails if a failure was requested for it,
//   3. applies the change to the tree of nodes as an unsynced change.
// Syncs make changes durable. Crash() replaces the tree by one of the states that a crash may leave
// (fake_file_crash.cc). Open files and locks are in fake_file_handles.cc.

namespace rhizome::testing {
namespace {

constexpr std::array<std::string_view, 19> kOperationNames = {
    "open",       "read",   "create", "open_append",    "append",         "sync", "close",
    "mkdir",      "remove", "rmdir",  "link",           "sync_directory", "list", "stat",
    "free_bytes", "lock",   "rename", "open_updatable", "write_at"};

void Collect(const FakeNode& directory, const std::string& prefix,
             std::map<std::string, std::vector<std::byte>>& out) {
  for (const auto& [name, child] : directory.names) {
    if (child->is_directory) {
      Collect(*child, prefix + name + "/", out);
    } else {
      out[prefix + name] = child->bytes;
    }
  }
}

}  // namespace

std::vector<std::string> FakeComponents(const Path& path) {
  std::vector<std::string> out;
  for (const Path& part : path.lexically_normal().relative_path()) {
    if (!part.empty() && part != "." && part != "..") out.push_back(part.string());
  }
  return out;
}

std::string_view FakeOperationName(FakeFileSystem::Operation operation) {
  return kOperationNames[static_cast<std::size_t>(operation)];
}

Status FakeErrno(int error, std::string_view operation, const Path& path) {
  return Status::FromErrno(error, fmt::format("{} '{}'", operation, path.string()));
}

FakeFileSystem::FakeFileSystem() : state_(std::make_shared<State>()) {}
FakeFileSystem::FakeFileSystem(const FakeImage& image) : FakeFileSystem() {
  MutexLock lock(state_->mutex);
  state_->root = CopyTree(image.root);
}
FakeFileSystem::~FakeFileSystem() = default;

bool FakeFileSystem::Changes(Operation operation) {
  switch (operation) {
    case Operation::kOpenRead:
    case Operation::kRead:
    case Operation::kClose:
    case Operation::kList:
    case Operation::kStat:
    case Operation::kFreeBytes:
      return false;
    default:
      return true;
  }
}

FakeImage FakeFileSystem::Image() const {
  MutexLock lock(state_->mutex);
  return {CopyTree(state_->root)};
}

FakeImage FakeFileSystem::ImageAfterCrash(CrashMode mode, std::uint64_t seed) const {
  FakeImage image = Image();
  CrashTree(*image.root, mode, seed);
  return image;
}

void FakeFileSystem::RecordCrashPoints() {
  MutexLock lock(state_->mutex);
  state_->recording = true;
}

std::vector<FakeCrashPoint> FakeFileSystem::TakeCrashPoints() {
  MutexLock lock(state_->mutex);
  state_->recording = false;
  return std::exchange(state_->points, {});
}

void FakeFileSystem::SetProgress(int acknowledged, int begun) {
  MutexLock lock(state_->mutex);
  state_->acknowledged = acknowledged;
  state_->begun = begun;
}

void FakeFileSystem::Crash(CrashMode mode, std::uint64_t seed) {
  MutexLock lock(state_->mutex);
  CrashTree(*state_->root, mode, seed);
  ++state_->epoch;
  state_->locks = 0;
  state_->fail_error = 0;
  state_->fail_when = nullptr;
}

void FakeFileSystem::LieAboutSyncs(std::function<bool(const Path&)> matches) {
  State::lies_about = std::move(matches);
}

int FakeFileSystem::lock_count() const {
  MutexLock lock(state_->mutex);
  return state_->locks;
}

std::uint64_t FakeFileSystem::operation_count() const {
  MutexLock lock(state_->mutex);
  return state_->operations;
}

void FakeFileSystem::FailAt(std::uint64_t operation, int error_number, bool sticky) {
  MutexLock lock(state_->mutex);
  state_->fail_at = operation;
  state_->fail_error = error_number;
  state_->fail_sticky = sticky;
}

void FakeFileSystem::FailWhen(std::function<bool(Operation, const Path&)> matches,
                              int error_number) {
  MutexLock lock(state_->mutex);
  state_->fail_when = std::move(matches);
  state_->fail_when_error = error_number;
}

void FakeFileSystem::ClearFailures() {
  MutexLock lock(state_->mutex);
  state_->fail_error = 0;
  state_->fail_when = nullptr;
}

std::vector<std::string> FakeFileSystem::Trace() const {
  MutexLock lock(state_->mutex);
  return state_->trace;
}

Status FakeFileSystem::FlipBit(const Path& path, std::uint64_t bit) {
  MutexLock lock(state_->mutex);
  RHIZOME_ASSIGN_OR_RETURN(const NodePtr node, state_->FindFile(path, "flip a bit of"));
  if (bit / 8 >= node->bytes.size()) return Status::NotFound("the file has no such bit");
  node->bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
  node->MakeDurable();
  return {};
}

Status FakeFileSystem::Overwrite(const Path& path, std::vector<std::byte> bytes) {
  MutexLock lock(state_->mutex);
  RHIZOME_ASSIGN_OR_RETURN(const NodePtr node, state_->FindFile(path, "overwrite"));
  node->bytes = std::move(bytes);
  node->MakeDurable();
  return {};
}

std::map<std::string, std::vector<std::byte>> FakeFileSystem::Files() const {
  MutexLock lock(state_->mutex);
  std::map<std::string, std::vector<std::byte>> out;
  Collect(*state_->root, "/", out);
  return out;
}

void FakeFileSystem::RefuseLinks(bool refuse) {
  MutexLock lock(state_->mutex);
  state_->refuse_links = refuse;
}

void FakeFileSystem::SetFreeBytes(std::uint64_t bytes) {
  MutexLock lock(state_->mutex);
  state_->free_bytes = bytes;
}

void FakeFileSystem::SetDirectAlignment(std::uint32_t bytes) {
  MutexLock lock(state_->mutex);
  state_->direct_alignment = bytes;
}

Result<std::unique_ptr<ReadableFile>> FakeFileSystem::OpenRead(const Path& path,
                                                               const ReadOptions& options) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kOpenRead, path));
  RHIZOME_ASSIGN_OR_RETURN(NodePtr node, state_->FindFile(path, "open"));
  return MakeFakeReadable(state_, std::move(node), path,
                          options.direct ? state_->direct_alignment : 1);
}

Result<std::unique_ptr<WritableFile>> FakeFileSystem::CreateFile(const Path& path) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kCreateFile, path));
  RHIZOME_ASSIGN_OR_RETURN(const auto place, state_->Parent(path, "create"));
  auto node = std::make_shared<FakeNode>();
  if (place.first->names.contains(place.second)) return Fail(FakeErrno(EEXIST, "create", path));
  place.first->Rename({.names = {{place.second, node}}});
  return MakeFakeWritable(state_, std::move(node), path);
}

Result<std::unique_ptr<WritableFile>> FakeFileSystem::OpenAppend(const Path& path,
                                                                 std::uint64_t keep_bytes) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kOpenAppend, path));
  RHIZOME_ASSIGN_OR_RETURN(NodePtr node, state_->FindFile(path, "open for appending"));
  if (keep_bytes > node->bytes.size())
    return Fail(Status::InvalidArgument(path.string() + " is shorter than what shall be kept"));
  node->Write({state_->operations - 1, keep_bytes, {}, /*cut=*/true});
  return MakeFakeWritable(state_, std::move(node), path);
}

Result<std::unique_ptr<UpdatableFile>> FakeFileSystem::OpenUpdatable(const Path& path,
                                                                     std::uint64_t size_bytes,
                                                                     const ReadOptions& options) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kOpenUpdatable, path));
  RHIZOME_ASSIGN_OR_RETURN(const auto place, state_->Parent(path, "open"));
  NodePtr node = state_->Find(path);
  if (node == nullptr) {
    node = std::make_shared<FakeNode>();
    place.first->Rename({.names = {{place.second, node}}});
  }
  if (node->is_directory) return Fail(FakeErrno(EISDIR, "open", path));
  const std::uint64_t former = std::min<std::uint64_t>(node->bytes.size(), size_bytes);
  if (node->bytes.size() != size_bytes)
    node->Write({state_->operations - 1, former, std::vector<std::byte>(size_bytes - former),
                 /*cut=*/true});
  return MakeFakeUpdatable(state_, std::move(node), path,
                           options.direct ? state_->direct_alignment : 1);
}

Status FakeFileSystem::CreateDirectory(const Path& path) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kCreateDirectory, path));
  RHIZOME_ASSIGN_OR_RETURN(const auto place, state_->Parent(path, "create folder"));
  if (place.first->names.contains(place.second)) return FakeErrno(EEXIST, "create folder", path);
  place.first->Rename({.names = {{place.second, MakeDirectory()}}});
  return {};
}

Status FakeFileSystem::RemoveFile(const Path& path) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kRemoveFile, path));
  RHIZOME_RETURN_IF_ERROR(state_->FindFile(path, "remove"));
  RHIZOME_ASSIGN_OR_RETURN(const auto place, state_->Parent(path, "remove"));
  place.first->Rename({.replaces = true, .names = {{place.second, nullptr}}});
  return {};
}

Status FakeFileSystem::RemoveDirectory(const Path& path) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kRemoveDirectory, path));
  RHIZOME_ASSIGN_OR_RETURN(const NodePtr node, state_->FindDirectory(path, "remove folder"));
  if (!node->names.empty()) return FakeErrno(ENOTEMPTY, "remove folder", path);
  RHIZOME_ASSIGN_OR_RETURN(const auto place, state_->Parent(path, "remove folder"));
  place.first->Rename({.replaces = true, .names = {{place.second, nullptr}}});
  return {};
}

Status FakeFileSystem::LinkFile(const Path& from, const Path& to) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kLinkFile, to));
  if (state_->refuse_links) return Status::Unsupported("no links here");
  RHIZOME_ASSIGN_OR_RETURN(const NodePtr node, state_->FindFile(from, "link"));
  RHIZOME_ASSIGN_OR_RETURN(const auto place, state_->Parent(to, "link"));
  if (place.first->names.contains(place.second)) return FakeErrno(EEXIST, "link", to);
  place.first->Rename({.names = {{place.second, node}}});
  return {};
}

Status FakeFileSystem::SyncDirectory(const Path& path) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kSyncDirectory, path));
  if (State::lies_about && State::lies_about(path)) return {};
  RHIZOME_ASSIGN_OR_RETURN(const NodePtr node, state_->FindDirectory(path, "sync folder"));
  node->MakeDurable();
  return {};
}

Status FakeFileSystem::RenameFile(const Path& from, const Path& to) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kRename, to));
  RHIZOME_ASSIGN_OR_RETURN(const NodePtr node, state_->FindFile(from, "rename"));
  RHIZOME_ASSIGN_OR_RETURN(const auto source, state_->Parent(from, "rename"));
  RHIZOME_ASSIGN_OR_RETURN(const auto target, state_->Parent(to, "rename"));
  if (source.first != target.first) return FakeErrno(EXDEV, "rename", to);
  source.first->Rename(
      {.replaces = true, .names = {{source.second, nullptr}, {target.second, node}}});
  return {};
}

Result<std::vector<DirectoryEntry>> FakeFileSystem::List(const Path& path) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kList, path));
  RHIZOME_ASSIGN_OR_RETURN(const NodePtr node, state_->FindDirectory(path, "list"));
  std::vector<DirectoryEntry> out;
  for (const auto& [name, child] : node->names) {
    out.push_back({name, child->is_directory ? DirectoryEntry::Kind::kDirectory
                                             : DirectoryEntry::Kind::kFile});
  }
  return out;
}

Result<FileInfo> FakeFileSystem::Stat(const Path& path) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kStat, path));
  const NodePtr node = state_->Find(path);
  if (node == nullptr) return Fail(FakeErrno(ENOENT, "stat", path));
  FileInfo info;
  info.kind = node->is_directory ? DirectoryEntry::Kind::kDirectory : DirectoryEntry::Kind::kFile;
  info.size_bytes = node->bytes.size();
  if (!node->is_directory) info.link_count = state_->LinkCount(node.get(), *state_->root);
  return info;
}

Result<std::uint64_t> FakeFileSystem::FreeBytes(const Path& path) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kFreeBytes, path));
  return state_->free_bytes;
}

Result<std::unique_ptr<FileLock>> FakeFileSystem::Lock(const Path& path, LockMode mode,
                                                       std::string_view content) {
  MutexLock lock(state_->mutex);
  RHIZOME_RETURN_IF_ERROR(state_->Begin(Operation::kLock, path));
  const bool exclusive = mode == LockMode::kExclusive;
  NodePtr node = state_->Find(path);
  if (node == nullptr && exclusive) {
    RHIZOME_ASSIGN_OR_RETURN(const auto place, state_->Parent(path, "lock"));
    node = std::make_shared<FakeNode>();
    place.first->Rename({.names = {{place.second, node}}});
  }
  if (node == nullptr) return Fail(FakeErrno(ENOENT, "lock", path));
  if (node->is_directory) return Fail(FakeErrno(EISDIR, "lock", path));
  if (node->exclusive_lock || (exclusive && node->shared_locks > 0)) {
    const std::string holder(reinterpret_cast<const char*>(node->bytes.data()), node->bytes.size());
    return Fail(Status::Busy(fmt::format("'{}' is locked: {}", path.string(), holder)));
  }
  if (exclusive) node->exclusive_lock = true;
  if (exclusive && !content.empty()) {
    const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
    node->Write({state_->operations - 1, 0, {bytes.begin(), bytes.end()}, /*cut=*/true});
  }
  if (!exclusive) ++node->shared_locks;
  ++state_->locks;
  return MakeFakeLock(state_, std::move(node), exclusive);
}

}  // namespace rhizome::testing
