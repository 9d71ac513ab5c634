#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>

#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {

/// A read in flight, which may need several submissions.
///
/// Invariants:
///   (1) buffer[0, done_bytes) holds the file's bytes, and done_bytes is a multiple of the file's
///       alignment until the read is done;
///   (2) `fruitless` counts the submissions since done_bytes last grew and never exceeds
///       kMaxFruitless,
///       so that every read ends, regardless of the kernel's answers.
struct PendingRead {
  static constexpr std::uint32_t kMaxFruitless = 16;  ///< above kMaxRingAttempts (uring_queue.cc)

  ReadRequest* request = nullptr;
  std::size_t wanted_bytes = 0;  ///< bytes to read; less than the buffer only at the end of a file
  std::size_t done_bytes = 0;
  std::uint32_t fruitless = 0;

  std::uint64_t next_offset() const { return request->offset_bytes + done_bytes; }
  std::span<std::byte> rest() const { return request->buffer.subspan(done_bytes); }
};

enum class ReadStep : std::uint8_t {
  kDone,      ///< request->status is set
  kContinue,  ///< read rest() at next_offset()
};

/// Prepares a read. Returns kDone if there is nothing to read or the request cannot be served.
ReadStep BeginRead(ReadRequest& request, PendingRead& pending) noexcept;

/// Processes the outcome of a submission: the number of bytes that arrived, or -errno. Used by all
/// queues that submit reads.
ReadStep CompleteRead(PendingRead& pending, std::int64_t outcome) noexcept;

/// Completes a read with ReadableFile::ReadAt, in the calling thread. Returns the number of
/// resubmissions.
std::uint64_t ReadInline(
    PendingRead& pending,
    const std::function<std::int64_t(const ReadRequest&, std::int64_t)>& fault_hook) noexcept;

/// Collects IoStats. Threads: the caller locks.
class IoMeter {
 public:
  /// Counts a completed request that was one of `depth` in flight.
  void Completed(const ReadRequest& request, std::size_t depth) {
    ++stats_.reads;
    stats_.read_bytes += request.buffer.size();
    depth_sum_ += static_cast<double>(depth);
  }
  void Retried(std::uint64_t count) { stats_.retries += count; }
  IoStats stats() const {
    IoStats out = stats_;
    if (out.reads > 0) out.mean_depth = depth_sum_ / static_cast<double>(out.reads);
    return out;
  }

 private:
  IoStats stats_;
  double depth_sum_ = 0;
};

/// Open a queue of one kind; see IoQueue::Open.
Result<std::unique_ptr<IoQueue>> OpenUringQueue(const IoQueueOptions& options);
Result<std::unique_ptr<IoQueue>> OpenPreadQueue(const IoQueueOptions& options);

/// Makes the pread queues of this process start no threads and read inside Submit. For tests that
/// open a store thousands of times on in-memory files. Must be called before the first queue is
/// opened.
void ReadWithoutThreads();
std::unique_ptr<IoQueue> OpenMappedQueue(const IoQueueOptions& options);

/// Memory-mapped files, whose pages are read by page faults, as in trainers that leave I/O to the
/// kernel. A file that shrinks ends the process (SIGBUS). Mappings are cached by path, because the
/// caller may close a file and open it again. Threads: one at a time.
class MappedFiles {
 public:
  MappedFiles() = default;
  MappedFiles(const MappedFiles&) = delete;
  MappedFiles& operator=(const MappedFiles&) = delete;
  ~MappedFiles();

  /// Returns the bytes of a file, which remain valid until this object is destroyed. Errors: see
  /// mmap.
  Result<std::span<const std::byte>> BytesOf(const ReadableFile& file);

 private:
  std::unordered_map<std::string, std::span<std::byte>> files_;
};

/// Returns a range of a mapped file. Errors: kCorruption, the file is too short.
Result<std::span<const std::byte>> PartOf(const ReadableFile& file,
                                          std::span<const std::byte> bytes, std::uint64_t offset,
                                          std::size_t count);

}  // namespace internal
}  // namespace rhizome
