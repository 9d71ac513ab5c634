// Spill files. A SpillWriter collects records into blocks and queues them; the thread of the
// SpillSpace (Work) takes blocks from the queue, adds a header with length and checksum, and writes
// them. A SpillReader reads the blocks back in order, verifies them, and can prefetch the next one.

#include "index/generation/spill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/base/quietly.h"
#include "storage/io/files.h"
#include "storage/io/job_folder.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kSyncBytes = std::uint64_t{64} << 20;

/// Header of each block. The checksum also covers the block's number, so that one block is never
/// mistaken for another.
struct Frame {
  std::uint32_t bytes;
  std::uint32_t crc32c;
};

std::uint32_t SumOf(std::uint32_t number, std::span<const std::byte> block) {
  return Crc32c(block, Crc32c(std::as_bytes(std::span(&number, 1))));
}

}  // namespace

std::size_t SpillBlockBytes(std::uint64_t budget_bytes, std::uint64_t streams) {
  constexpr std::uint64_t kLeast = std::uint64_t{4} << 10;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
  return std::clamp(budget_bytes / std::max<std::uint64_t>(streams, 1), kLeast, kMost);
}

Result<std::unique_ptr<SpillSpace>> SpillSpace::Create(FileSystem& fs, const Path& scratch,
                                                       std::string_view job,
                                                       std::uint64_t queue_bytes) {
  const Path folder = scratch / job;
  std::unique_ptr<SpillSpace> space(new SpillSpace(fs, folder, queue_bytes));
  RHIZOME_ASSIGN_OR_RETURN(space->lock_, ClaimJobFolder(fs, folder));
  RHIZOME_RETURN_IF_ERROR(space->thread_.Start([raw = space.get()] {
    Status status = Guarded([raw] { return raw->Work(); });
    if (!status.ok()) raw->GiveUp(status);
    return status;
  }));
  return space;
}

SpillSpace::~SpillSpace() {
  Quietly([&] { static_cast<void>(Clear().ok()); });
}

void SpillSpace::Stop() {
  if (!thread_.started()) return;
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    queue_.clear();
    changed_.NotifyAll();
  }
  static_cast<void>(thread_.Join());
}

Status SpillSpace::Clear() {
  Stop();
  if (!lock_) return Status::Ok();
  lock_.reset();
  RHIZOME_RETURN_IF_ERROR(RemoveJobFolder(fs_, folder_));
  const Path scratch = folder_.parent_path();
  const auto entries = fs_.List(scratch);
  if (entries && entries->empty()) RHIZOME_RETURN_IF_ERROR(fs_.RemoveDirectory(scratch));
  return fs_.SyncDirectory(scratch.parent_path());
}

Path SpillSpace::NewPath() { return folder_ / fmt::format("{:06}.spill", next_file_++); }

Status SpillSpace::Enqueue(std::shared_ptr<Output> output, std::vector<std::byte> block) {
  const MutexLock lock(mutex_);
  while (failed_.ok() && queued_bytes_ > 0 && queued_bytes_ + block.size() > queue_limit_)
    changed_.Wait(mutex_);
  if (!failed_.ok()) return failed_;
  queued_bytes_ += block.size();
  queue_.push_back({std::move(output), std::move(block)});
  changed_.NotifyAll();
  return Status::Ok();
}

Status SpillSpace::Drain() {
  const MutexLock lock(mutex_);
  while (failed_.ok() && queued_bytes_ > 0) changed_.Wait(mutex_);
  return failed_;
}

// Wakes all waiting callers with the failure. They may destroy their outputs after that, so no
// block may be written afterwards.
void SpillSpace::GiveUp(Status status) noexcept {
  const MutexLock lock(mutex_);
  if (failed_.ok()) failed_ = std::move(status);
  stop_ = true;
  changed_.NotifyAll();
}

// Main loop of the writing thread: takes the next block, writes it without holding the lock, and
// wakes the writers that wait for space in the queue.
Status SpillSpace::Work() {
  while (true) {
    Job job{};
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stop_) changed_.Wait(mutex_);
      if (stop_) return Status::Ok();
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    RHIZOME_RETURN_IF_ERROR(WriteBlock(*job.output, job.block));
    const MutexLock lock(mutex_);
    queued_bytes_ -= job.block.size();
    changed_.NotifyAll();
  }
}

Status SpillSpace::WriteBlock(Output& output, std::span<const std::byte> block) {
  const Frame frame{static_cast<std::uint32_t>(block.size()), SumOf(output.blocks++, block)};
  RHIZOME_RETURN_IF_ERROR(output.file->Append(std::as_bytes(std::span(&frame, 1))));
  RHIZOME_RETURN_IF_ERROR(output.file->Append(block));
  const std::uint64_t bytes = sizeof(frame) + block.size();
  bytes_written_ += bytes;
  output.unsynced_bytes += bytes;
  if (output.unsynced_bytes < kSyncBytes) return Status::Ok();
  output.unsynced_bytes = 0;
  return output.file->Sync();
}

SpillFile& SpillFile::operator=(SpillFile&& other) noexcept {
  if (this == &other) return *this;
  Remove();
  space_ = std::exchange(other.space_, nullptr);
  path_ = std::move(other.path_);
  size_bytes_ = other.size_bytes_;
  return *this;
}

void SpillFile::Remove() {
  if (space_ == nullptr) return;
  // A file that cannot be removed now is removed with the folder.
  Quietly([&] { static_cast<void>(space_->fs().RemoveFile(path_).ok()); });
  space_ = nullptr;
}

Result<SpillWriter> SpillWriter::Create(SpillSpace& space, std::size_t block_bytes) {
  SpillWriter writer(space, space.NewPath(), block_bytes);
  writer.output_ = std::make_shared<SpillSpace::Output>();
  RHIZOME_ASSIGN_OR_RETURN(writer.output_->file, space.fs().CreateFile(writer.path_));
  return writer;
}

Status SpillWriter::Append(std::span<const std::byte> record) {
  if (!block_.empty() && block_.size() + record.size() > block_bytes_)
    RHIZOME_RETURN_IF_ERROR(EndBlock());
  if (block_.empty()) block_.reserve(std::max(block_bytes_, record.size()));
  block_.insert(block_.end(), record.begin(), record.end());
  return Status::Ok();
}

Status SpillWriter::EndBlock() {
  if (block_.empty()) return Status::Ok();
  return space_->Enqueue(output_, std::exchange(block_, {}));
}

Result<SpillFile> SpillWriter::Finish() {
  RHIZOME_RETURN_IF_ERROR(EndBlock());
  RHIZOME_RETURN_IF_ERROR(space_->Drain());
  SpillFile file;
  file.size_bytes_ = output_->file->size_bytes();
  RHIZOME_RETURN_IF_ERROR(output_->file->Close());
  file.path_ = path_;
  file.space_ = space_;
  output_.reset();
  return file;
}

Result<SpillReader> SpillReader::Open(const SpillFile& file, bool ahead) {
  SpillReader reader;
  reader.source_ = std::make_unique<Source>();
  RHIZOME_ASSIGN_OR_RETURN(reader.source_->file, file.space_->fs().OpenRead(file.path_));
  reader.ahead_ = ahead;
  return reader;
}

Result<std::vector<std::byte>> SpillReader::ReadBlock(Source& source) {
  ReadableFile& file = *source.file;
  if (source.offset_bytes == file.size_bytes()) return std::vector<std::byte>();
  const auto damaged = [&] {
    return Fail(Status::Corruption(fmt::format(
        "{}: the block at offset {} differs from the block that was written there; check the disk",
        file.path().string(), source.offset_bytes)));
  };
  Frame frame{};
  RHIZOME_RETURN_IF_ERROR(
      ReadExactly(file, source.offset_bytes, std::as_writable_bytes(std::span(&frame, 1))));
  if (frame.bytes > file.size_bytes() - source.offset_bytes - sizeof(frame)) return damaged();
  std::vector<std::byte> block(frame.bytes);
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, source.offset_bytes + sizeof(frame), block));
  if (SumOf(source.blocks++, block) != frame.crc32c) return damaged();
  source.offset_bytes += sizeof(frame) + block.size();
  return block;
}

Result<std::span<const std::byte>> SpillReader::Next() {
  auto block = next_.valid() ? next_.get() : ReadBlock(*source_);
  if (!block) return Fail(block.error());
  block_ = *std::move(block);
  if (ahead_ && !block_.empty()) {
    // If the system cannot start a thread, the next call reads the block itself.
    static_cast<void>(Guarded([&] {
      next_ = std::async(std::launch::async, [source = source_.get()] {
        return Guarded([source] { return ReadBlock(*source); });
      });
      return Status::Ok();
    }));
  }
  return std::span<const std::byte>(block_);
}

}  // namespace internal
}  // namespace rhizome
