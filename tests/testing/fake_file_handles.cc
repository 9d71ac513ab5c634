#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rhizome/file_system.h"
#include "storage/base/mutex.h"
#include "testing/fake_file_state.h"

// Files and locks that a FakeFileSystem has opened. Each operation locks the shared state, fails if
// the disk has crashed since the file was opened or if a failure was requested for it, and then
// reads or changes the node.

namespace rhizome::testing {
namespace {

using State = FakeFileSystem::State;
using Operation = FakeFileSystem::Operation;

Status Dead(const Path& path) {
  return Status::IoError(fmt::format("'{}' was opened before the crash", path.string()));
}

template <typename Base>
class FakeReads : public Base {
 public:
  FakeReads(std::shared_ptr<State> state, NodePtr node, Path path, std::uint64_t epoch,
            std::uint64_t size_bytes, std::uint32_t alignment_bytes)
      : state_(std::move(state)),
        node_(std::move(node)),
        path_(std::move(path)),
        epoch_(epoch),
        size_bytes_(size_bytes),
        alignment_bytes_(alignment_bytes) {}

  Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) override {
    MutexLock lock(state_->mutex);
    const int fault = state_->Count(Operation::kRead, path_);
    if (fault > 0) return Fail(FakeErrno(fault, "read", path_));
    if (epoch_ != state_->epoch) return Fail(Dead(path_));
    if (!IsAligned(offset_bytes, out)) return Fail(FakeErrno(EINVAL, "read", path_));
    const std::vector<std::byte>& bytes = node_->bytes;
    if (offset_bytes >= bytes.size()) return std::size_t{0};
    std::size_t count = std::min<std::uint64_t>(out.size(), bytes.size() - offset_bytes);
    if (fault == FakeFileSystem::kShortRead) count = (count + 1) / 2;
    if (fault == FakeFileSystem::kEmptyRead) count = 0;
    std::memcpy(out.data(), bytes.data() + offset_bytes, count);
    return count;
  }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  const Path& path() const override { return path_; }
  std::uint32_t alignment_bytes() const override { return alignment_bytes_; }

 protected:
  bool IsAligned(std::uint64_t offset_bytes, std::span<const std::byte> memory) const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return offset_bytes % alignment_bytes_ == 0 && memory.size() % alignment_bytes_ == 0 &&
           address % alignment_bytes_ == 0;
  }

  const std::shared_ptr<State> state_;
  const NodePtr node_;
  const Path path_;
  const std::uint64_t epoch_;

 private:
  const std::uint64_t size_bytes_;
  const std::uint32_t alignment_bytes_;
};

class FakeUpdatableFile final : public FakeReads<UpdatableFile> {
 public:
  using FakeReads::FakeReads;

  Status WriteAt(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
    MutexLock lock(state_->mutex);
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    if (!IsAligned(offset_bytes, bytes) || offset_bytes + bytes.size() > size_bytes())
      return FakeErrno(EINVAL, "write", path_);
    const Status begun = state_->Begin(Operation::kWriteAt, path_);
    const auto written = bytes.first(begun.ok() ? bytes.size() : bytes.size() / 2);
    node_->Write({state_->operations - 1, offset_bytes, {written.begin(), written.end()}, false});
    return Keep(begun);
  }

  Status Sync() override {
    MutexLock lock(state_->mutex);
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const Status begun = state_->Begin(Operation::kSync, path_);
    const bool lie = State::lies_about && State::lies_about(path_);
    if (begun.ok() && !lie) node_->MakeDurable();
    return Keep(begun);
  }

 private:
  Status CheckUsable() const RHIZOME_REQUIRES(state_->mutex) {
    return epoch_ != state_->epoch ? Dead(path_) : failed_;
  }
  Status Keep(Status status) {
    if (!status.ok()) failed_ = status;
    return status;
  }

  Status failed_;
};

class FakeWritableFile : public WritableFile {
 public:
  FakeWritableFile(std::shared_ptr<State> state, NodePtr node, Path path, std::uint64_t epoch,
                   std::uint64_t size_bytes)
      : state_(std::move(state)),
        node_(std::move(node)),
        path_(std::move(path)),
        epoch_(epoch),
        size_bytes_(size_bytes) {}

  Status Append(std::span<const std::byte> bytes) override {
    MutexLock lock(state_->mutex);
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const Status begun = state_->Begin(Operation::kAppend, path_);
    const std::size_t count = begun.ok() ? bytes.size() : bytes.size() / 2;
    const auto written = bytes.first(count);
    node_->Write(
        {state_->operations - 1, node_->bytes.size(), {written.begin(), written.end()}, false});
    size_bytes_ += count;
    return Keep(begun);
  }

  Status Sync() override {
    MutexLock lock(state_->mutex);
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const Status begun = state_->Begin(Operation::kSync, path_);
    const bool lie = State::lies_about && State::lies_about(path_);
    if (begun.ok() && !lie) node_->MakeDurable();
    return Keep(begun);
  }

  Status Close() override {
    MutexLock lock(state_->mutex);
    if (closed_) return failed_;
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    closed_ = true;
    return Keep(state_->Begin(Operation::kClose, path_));
  }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  const Path& path() const override { return path_; }

 private:
  Status CheckUsable() const RHIZOME_REQUIRES(state_->mutex) {
    if (epoch_ != state_->epoch) return Dead(path_);
    if (!failed_.ok()) return failed_;
    return closed_ ? Status::InvalidArgument(path_.string() + " is closed") : Status::Ok();
  }
  Status Keep(Status status) {
    if (!status.ok()) failed_ = status;
    return status;
  }

  const std::shared_ptr<State> state_;
  const NodePtr node_;
  const Path path_;
  const std::uint64_t epoch_;
  std::uint64_t size_bytes_;
  bool closed_ = false;
  Status failed_;
};

class FakeLock : public FileLock {
 public:
  FakeLock(std::shared_ptr<State> state, NodePtr node, bool exclusive, std::uint64_t epoch)
      : state_(std::move(state)), node_(std::move(node)), exclusive_(exclusive), epoch_(epoch) {}
  ~FakeLock() override {
    MutexLock lock(state_->mutex);
    if (epoch_ != state_->epoch) return;  // the crash released it
    --state_->locks;
    if (exclusive_) {
      node_->exclusive_lock = false;
    } else {
      --node_->shared_locks;
    }
  }

 private:
  const std::shared_ptr<State> state_;
  const NodePtr node_;
  const bool exclusive_;
  const std::uint64_t epoch_;
};

}  // namespace

std::unique_ptr<ReadableFile> MakeFakeReadable(const std::shared_ptr<State>& state, NodePtr node,
                                               Path path, std::uint32_t alignment_bytes) {
  const std::uint64_t epoch = state->epoch;
  const std::uint64_t size = node->bytes.size();
  return std::make_unique<FakeReads<ReadableFile>>(state, std::move(node), std::move(path), epoch,
                                                   size, alignment_bytes);
}

std::unique_ptr<UpdatableFile> MakeFakeUpdatable(const std::shared_ptr<State>& state, NodePtr node,
                                                 Path path, std::uint32_t alignment_bytes) {
  const std::uint64_t epoch = state->epoch;
  const std::uint64_t size = node->bytes.size();
  return std::make_unique<FakeUpdatableFile>(state, std::move(node), std::move(path), epoch, size,
                                             alignment_bytes);
}

std::unique_ptr<WritableFile> MakeFakeWritable(const std::shared_ptr<State>& state, NodePtr node,
                                               Path path) {
  const std::uint64_t epoch = state->epoch;
  const std::uint64_t size = node->bytes.size();
  return std::make_unique<FakeWritableFile>(state, std::move(node), std::move(path), epoch, size);
}

std::unique_ptr<FileLock> MakeFakeLock(const std::shared_ptr<State>& state, NodePtr node,
                                       bool exclusive) {
  const std::uint64_t epoch = state->epoch;
  return std::make_unique<FakeLock>(state, std::move(node), exclusive, epoch);
}

}  // namespace rhizome::testing
