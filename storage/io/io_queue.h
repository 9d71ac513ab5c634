#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/resource_options.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// A read in a batch. The caller owns `buffer` until the batch is done.
///
/// A direct file (alignment_bytes() > 1) needs offset, length and memory in whole blocks, but its
/// last block is rarely full. Therefore a direct request may extend past the end of the file: the
/// bytes up to size_bytes() must arrive, the rest of the buffer is unspecified, and the request
/// succeeds. A buffered request that extends past the end, or any request that starts past it,
/// fails with kCorruption.
struct ReadRequest {
  ReadableFile* file = nullptr;
  std::uint64_t offset_bytes = 0;
  std::span<std::byte> buffer = {};  ///< filled (see above), unless `status` is an error
  Status status = {};                ///< set by IoQueue
};

struct IoStats {
  std::uint64_t reads = 0;       ///< requests completed
  std::uint64_t read_bytes = 0;  ///< bytes that they requested
  std::uint64_t retries = 0;     ///< resubmissions: after EINTR, EAGAIN and short reads
  double mean_depth = 0;         ///< requests in flight, averaged over completions
};

/// Reads batches of byte ranges, many in flight at once. Implemented with io_uring (with registered
/// buffers if possible) and with a pool of threads that call pread. Files are not registered with
/// the ring: they are opened and closed without the queue's knowledge, and a stale slot would read
/// another file.
///
/// Both implementations handle completions the same way: EINTR and EAGAIN are retried a limited
/// number of times, a short read is continued at an aligned offset, 0 bytes before the expected end
/// are kCorruption (truncated), and any other errno is an error of that request only.
///
/// Threads: one at a time; create one queue for each thread that reads. Another thread may take
/// over a queue only while nothing is in flight.
/// Ownership: files and buffers must outlive the calls that use them; registered memory must
/// outlive the queue. After Submit or Reap has failed, destroy the queue before the buffers in
/// flight: the destructor waits until the kernel no longer uses them.
class IoQueue {
 public:
  /// Errors: kInvalidArgument, options out of range; kUnsupported, `maker` is kUring and the kernel
  /// (or a sandbox) forbids io_uring.
  static Result<std::unique_ptr<IoQueue>> Open(const IoQueueOptions& options);
  virtual ~IoQueue() = default;

  /// Registers memory that later requests will read into with the kernel: its pages remain pinned,
  /// and reads become cheaper for the processor. May be called at most once. A failure
  /// (RLIMIT_MEMLOCK) is not reported, because reads still work.
  virtual void RegisterMemory(std::span<std::byte> memory) = 0;

  /// Starts as many of `requests` as the queue can hold, from the front, and returns their number.
  /// The caller submits the rest again after Reap. The requests must not move until they are
  /// reaped.
  virtual Result<std::size_t> Submit(std::span<ReadRequest> requests) = 0;

  /// Waits until at least `min_count` requests are done (or all in flight, if fewer), and returns
  /// all that are done; the span is valid until the next call. Errors: kIoError, the queue itself
  /// failed; errors of a read are reported in its request.
  virtual Result<std::span<ReadRequest* const>> Reap(std::size_t min_count) = 0;

  /// Number of requests that were submitted and not yet reaped.
  virtual std::size_t in_flight() const = 0;
  virtual IoMaker maker() const = 0;
  virtual IoStats stats() const = 0;

  /// Submits all requests and waits for all of them, keeping the queue full. Returns the first
  /// error in the order of `requests`.
  Status ReadAll(std::span<ReadRequest> requests);
};

/// Owns memory that is aligned for direct reads. Empty if default-constructed.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignmentBytes = 4096;
  AlignedBuffer() = default;
  /// Errors: kOutOfMemory.
  static Result<AlignedBuffer> Allocate(std::size_t size_bytes);

  /// Reserves an address range of `size_bytes`. The caller is certain to use the first
  /// `sure_bytes`: the kernel refuses if it lacks memory for them. The rest uses memory only when
  /// it is written. The memory is zeroed. Errors: kOutOfMemory.
  static Result<AlignedBuffer> Reserve(std::size_t size_bytes, std::size_t sure_bytes);

  /// Returns the memory of a buffer from Reserve to the system. Its addresses remain valid and read
  /// as zeros. Does nothing to a buffer from Allocate.
  void GiveBack();

  std::span<std::byte> bytes() const { return {data_.get(), size_bytes_}; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  struct Free {
    Free() : mapped_bytes(0) {}
    explicit Free(std::size_t bytes) : mapped_bytes(bytes) {}
    std::size_t mapped_bytes;  // 0: allocated on the heap
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_bytes_ = 0;
};

}  // namespace rhizome
