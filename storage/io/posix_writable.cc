#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "storage/base/quietly.h"
#include "storage/io/io_queue.h"
#include "storage/io/posix_file.h"

namespace rhizome {
inline namespace internal {
namespace {

// Appends are collected in a buffer. It is small at first, because many files with small appends
// may be open at once; it becomes large at the first large append, whose writer can afford the
// memory. A buffer is only as long as a disk needs for most of its throughput, since other requests
// wait for it.
constexpr std::size_t kSmallBytes = std::size_t{64} << 10;
constexpr std::size_t kLargePieceBytes = std::size_t{128} << 10;
constexpr std::size_t kLargeBytes = std::size_t{256} << 10;

// Offset, length and memory of a direct write are multiples of this: sectors have at most 4 KiB.
constexpr std::size_t kUnitBytes = AlignedBuffer::kAlignmentBytes;

// If direct writes are refused, write-back of dirty pages starts each time this many bytes are
// dirty, so that a sync does not wait for gigabytes.
constexpr std::size_t kWriteBehindBytes = std::size_t{4} << 20;

std::size_t WholeUnits(std::size_t bytes) { return bytes - bytes % kUnitBytes; }

bool IsAligned(const std::byte* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kUnitBytes == 0;
}

/// Appends to a file. Large appends bypass the page cache by direct writes. On the disks where this
/// was measured, that is three times as fast as writing pages and waiting for them, and the
/// write-ahead log of commits on the same file system never waits for those pages (ext4 writes a
/// file's new pages before it closes the transaction that allocated them).
///
/// Invariant: once `failed_` is set, nothing more is written to the file. The kernel may have
/// dropped pages of a failed write-back, so continuing could leave a hole that a later sync would
/// not report.
class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(Descriptor descriptor, Path path, std::uint64_t size_bytes)
      : descriptor_(std::move(descriptor)),
        path_(std::move(path)),
        written_bytes_(size_bytes),
        direct_(size_bytes == 0 ? Direct::kNotYet : Direct::kRefused) {}
  ~PosixWritableFile() override {
    if (descriptor_.get() >= 0) Quietly([&] { static_cast<void>(Flush().ok()); });
  }

  /// Appends in these steps:
  ///   1. Allocates the buffer, or a larger one at the first large append.
  ///   2. Writes whole blocks of a large, aligned append directly from the caller's memory.
  ///   3. Copies the rest into the buffer, and writes the buffer each time it is full.
  /// The tail remains in the buffer until Sync, Close or the destructor (Flush).
  Status Append(std::span<const std::byte> bytes) override {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    if (buffer_.size_bytes() == 0) RHIZOME_RETURN_IF_ERROR(GrowBuffer(kSmallBytes));
    if (bytes.size() >= kLargePieceBytes && !is_large())
      RHIZOME_RETURN_IF_ERROR(GrowBuffer(kLargeBytes));
    while (!bytes.empty()) {
      if (gathered_ == 0 && bytes.size() >= kLargeBytes && IsAligned(bytes.data())) {
        const auto whole = bytes.first(WholeUnits(bytes.size()));  // written without a copy
        RHIZOME_RETURN_IF_ERROR(WriteGathered(whole));
        bytes = bytes.subspan(whole.size());
        continue;
      }
      const auto piece = bytes.first(std::min(bytes.size(), buffer_.size_bytes() - gathered_));
      std::memcpy(buffer_.bytes().data() + gathered_, piece.data(), piece.size());
      gathered_ += piece.size();
      bytes = bytes.subspan(piece.size());
      if (gathered_ < buffer_.size_bytes()) continue;
      RHIZOME_RETURN_IF_ERROR(WriteGathered(Gathered()));
      gathered_ = 0;
    }
    return {};
  }

  Status Sync() override {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    RHIZOME_RETURN_IF_ERROR(Flush());
    if (fdatasync(descriptor_.get()) == 0) return {};
    return Poison(SystemError(errno, "sync", path_));
  }

  Status Close() override {
    if (descriptor_.get() < 0) return failed_;
    const Status flushed = Flush();
    const int error = descriptor_.Close();
    if (flushed.ok() && error != 0) return Poison(SystemError(error, "close", path_));
    return flushed;
  }

  std::uint64_t size_bytes() const override { return written_bytes_ + gathered_; }
  const Path& path() const override { return path_; }

 private:
  /// kRefused: the file system refuses direct writes, or the end of the file is not block-aligned.
  enum class Direct { kNotYet, kOn, kRefused };

  Status CheckUsable() const {
    if (!failed_.ok()) return failed_;
    if (descriptor_.get() >= 0) return {};
    return Status::InvalidArgument(fmt::format("'{}' is closed already", path_.string()));
  }

  std::span<const std::byte> Gathered() const { return buffer_.bytes().first(gathered_); }

  bool is_large() const { return buffer_.size_bytes() == kLargeBytes; }

  Status GrowBuffer(std::size_t size_bytes) {
    RHIZOME_ASSIGN_OR_RETURN(AlignedBuffer larger, AlignedBuffer::Allocate(size_bytes));
    if (gathered_ > 0) std::memcpy(larger.bytes().data(), buffer_.bytes().data(), gathered_);
    buffer_ = std::move(larger);
    return {};
  }

  Status Flush() {
    if (!failed_.ok()) return failed_;
    // Whole blocks of a large file are written directly, the tail through the page cache.
    const std::size_t whole = is_large() ? WholeUnits(gathered_) : 0;
    RHIZOME_RETURN_IF_ERROR(WriteGathered(Gathered().first(whole)));
    const auto tail = Gathered().subspan(whole);
    if (!tail.empty()) {
      StopDirect();
      RHIZOME_RETURN_IF_ERROR(Write(tail));
    }
    gathered_ = 0;
    return {};
  }

  /// `bytes.size()` is a multiple of kUnitBytes.
  Status WriteGathered(std::span<const std::byte> bytes) {
    if (bytes.empty()) return {};
    if (is_large() && direct_ == Direct::kNotYet)
      direct_ = SetDirect(true) ? Direct::kOn : Direct::kRefused;
    if (direct_ == Direct::kOn) return WriteDirect(bytes);
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kWriteBehindBytes));
      RHIZOME_RETURN_IF_ERROR(Write(piece));
      bytes = bytes.subspan(piece.size());
      StartWriteBack();
    }
    return {};
  }

  Status WriteDirect(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno != EINVAL)
        return Poison(SystemError(
            errno, fmt::format("write of {} bytes at offset {}", bytes.size(), written_bytes_),
            path_));
      const auto done = static_cast<std::size_t>(std::max<ssize_t>(written, 0));
      written_bytes_ += done;
      bytes = bytes.subspan(done);
      if (done > 0 && done % kUnitBytes == 0) continue;
      // Some file systems accept O_DIRECT and refuse the write; some stop between two blocks.
      StopDirect();
      return Write(bytes);
    }
    return {};
  }

  void StopDirect() {
    if (direct_ == Direct::kOn) (void)SetDirect(false);
    direct_ = Direct::kRefused;
    sent_bytes_ = written_bytes_;
  }

  bool SetDirect(bool on) {
    const int flags = fcntl(descriptor_.get(), F_GETFL);
    return flags >= 0 &&
           fcntl(descriptor_.get(), F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  }

  Status Write(std::span<const std::byte> bytes) {
    const Status status = WriteFully(descriptor_.get(), bytes, path_, written_bytes_);
    if (!status.ok()) return Poison(status);
    written_bytes_ += bytes.size();
    return {};
  }

  // This is only a hint; errors of the write-back are reported by the sync.
  void StartWriteBack() {
    if (written_bytes_ - sent_bytes_ < kWriteBehindBytes) return;
    (void)sync_file_range(descriptor_.get(), static_cast<off_t>(sent_bytes_),
                          static_cast<off_t>(written_bytes_ - sent_bytes_), SYNC_FILE_RANGE_WRITE);
    sent_bytes_ = written_bytes_;
  }

  // Makes every later call fail; see the invariant.
  Status Poison(Status status) {
    failed_ = Status(status.code(),
                     status.message() + " (the file accepts no more writes; write it again)");
    return status;
  }

  Descriptor descriptor_;
  const Path path_;
  std::uint64_t written_bytes_;
  std::uint64_t sent_bytes_ = 0;  // write-back has started up to here, if direct writes are refused
  Direct direct_;
  AlignedBuffer buffer_;
  std::size_t gathered_ = 0;  // bytes in the buffer that are not yet written
  Status failed_;
};

}  // namespace

std::unique_ptr<WritableFile> MakePosixWritable(Descriptor descriptor, const Path& path,
                                                std::uint64_t size_bytes) {
  return std::make_unique<PosixWritableFile>(std::move(descriptor), path, size_bytes);
}

}  // namespace internal
}  // namespace rhizome
