#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// One read of a batch. The caller owns `buffer` until the batch is done.
///
/// A direct file (alignment_bytes() > 1) needs offset, length and memory in whole units, and its
/// last unit is seldom full. So a direct request may reach past the end of the file: the bytes up
/// to size_bytes() must arrive, the rest of the buffer is unspecified, and that is success. A
/// buffered request that reaches past the end is kCorruption, as is one that starts past it.
struct ReadRequest {
  ReadableFile* file = nullptr;
  std::uint64_t offset_bytes = 0;
  std::span<std::byte> buffer = {};  ///< filled (see above), or `status` says why not
  Status status = {};                ///< set by IoQueue
};

/// The ways in which a queue reads.
enum class IoMaker : std::uint8_t {
  kAuto = 0,  ///< io_uring if the kernel allows it, else pread
  kUring,
  kPread,
  kMapped,  ///< copies out of mapped files: a baseline for benchmarks, no protection from damage
};
std::string_view IoMakerName(IoMaker maker);

struct IoQueueOptions {
  IoMaker maker = IoMaker::kAuto;

  /// Requests in flight at once. Range [1, 4096].
  std::uint32_t depth = 64;

  /// Threads of the pread maker. Range [1, 256].
  std::uint32_t pread_threads = 8;

  /// For tests: receives the raw outcome of every read (bytes, or -errno) of io_uring and pread,
  /// and returns the outcome that the queue shall believe instead. May be called from several
  /// threads. A failed ReadableFile::ReadAt (pread, and files without a descriptor) shows as -EIO.
  std::function<std::int64_t(const ReadRequest&, std::int64_t)> fault_hook = {};
};

struct IoStats {
  std::uint64_t reads = 0;       ///< requests completed
  std::uint64_t read_bytes = 0;  ///< bytes asked for by them
  std::uint64_t retries = 0;     ///< resubmissions: EINTR, EAGAIN and the rest of short reads
  double mean_depth = 0;         ///< requests in flight, averaged over completions
};

/// Reads batches of byte ranges, many in flight at once. Behind the interface are io_uring (with
/// registered buffers if possible) and a pool of threads that pread. Files are not registered: they
/// are opened and closed without the queue's knowledge, and a stale slot would read another file.
///
/// Both treat a completion alike: EINTR and EAGAIN are retried a bounded number of times, a short
/// read is continued at an aligned place, 0 bytes before the wanted end are kCorruption
/// (truncated), any other errno is an error of that request alone.
///
/// Threads: one at a time; make one queue for each thread that reads. Another thread may take a
/// queue over only while nothing is in flight.
/// Ownership: files and buffers must outlive the calls that use them; registered memory must stay
/// until the queue is destroyed. After Submit or Reap has failed, destroy the queue before the
/// buffers of what is in flight: the destructor waits for the kernel to let go of them.
class IoQueue {
 public:
  /// Errors: kInvalidArgument, options out of range; kUnsupported, `maker` is kUring and the kernel
  /// (or a sandbox) forbids io_uring.
  static Result<std::unique_ptr<IoQueue>> Open(const IoQueueOptions& options);
  virtual ~IoQueue() = default;

  /// Tells the kernel once about memory that later requests will read into: pages stay pinned and a
  /// read costs less. At most once. Failing (RLIMIT_MEMLOCK) is not an error: reads still work.
  virtual void RegisterMemory(std::span<std::byte> memory) = 0;

  /// Starts as many of `requests` as there is room for in the queue; returns how many, from the
  /// front. The rest is the caller's to submit again after Reap.
  /// The requests must stay where they are until they are reaped.
  virtual Result<std::size_t> Submit(std::span<ReadRequest> requests) = 0;

  /// Waits until at least `min_count` requests, or all in flight if these are fewer, are done, and
  /// returns those that are (the span is valid until the next call). Errors: kIoError if the queue
  /// itself broke; a failed read shows in its request.
  virtual Result<std::span<ReadRequest* const>> Reap(std::size_t min_count) = 0;

  /// Requests that were submitted and not reaped yet.
  virtual std::size_t in_flight() const = 0;
  virtual IoMaker maker() const = 0;
  virtual IoStats stats() const = 0;

  /// Submits all requests and waits for all, keeping the queue full. Returns the first failed
  /// status in the order of `requests`.
  Status ReadAll(std::span<ReadRequest> requests);
};

/// Owns memory that is aligned for direct reads. Default-constructed it is empty.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignmentBytes = 4096;
  AlignedBuffer() = default;
  /// Errors: kOutOfMemory.
  static Result<AlignedBuffer> Allocate(std::size_t size_bytes);

  /// Reserves addresses for `size_bytes`, of which the first `sure_bytes` will be used for certain:
  /// the kernel refuses if it lacks memory for these. The rest takes memory only when it is
  /// written. The memory holds zeros. Errors: kOutOfMemory.
  static Result<AlignedBuffer> Reserve(std::size_t size_bytes, std::size_t sure_bytes);

  /// Returns the memory of a buffer from Reserve to the system. Its addresses stay valid and hold
  /// zeros. Does nothing to a buffer from Allocate.
  void GiveBack();

  std::span<std::byte> bytes() const { return {data_.get(), size_bytes_}; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  struct Free {
    Free() : mapped_bytes(0) {}
    explicit Free(std::size_t bytes) : mapped_bytes(bytes) {}
    std::size_t mapped_bytes;  // 0: from the heap
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_bytes_ = 0;
};

}  // namespace rhizome
