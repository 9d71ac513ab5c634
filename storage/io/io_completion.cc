#include "storage/io/io_completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {
namespace {

std::string Where(const PendingRead& pending) {
  return fmt::format("read of {} bytes at offset {} of '{}'", pending.rest().size(),
                     pending.next_offset(), pending.request->file->path().string());
}

ReadStep Finish(PendingRead& pending, Status status) {
  pending.request->status = std::move(status);
  return ReadStep::kDone;
}

Status Truncated(const PendingRead& pending, std::uint64_t end) {
  const ReadRequest& request = *pending.request;
  return Status::Corruption(
      fmt::format("'{}' ends at offset {}, but {} bytes at offset {} are requested (truncated)",
                  request.file->path().string(), end, pending.wanted_bytes, request.offset_bytes));
}

/// Errors after which a read is retried. A ring answers ECANCELED for reads that were started by a
/// thread which has ended.
bool IsTransient(std::int64_t outcome) {
  return outcome == -EINTR || outcome == -EAGAIN || outcome == -ECANCELED;
}

// Creating an error message allocates memory, which may fail. An exception must not leave a queue
// with half updated counters, so it becomes the status of the read.
ReadStep FinishByException(PendingRead& pending) { return Finish(pending, StatusOfException()); }

ReadStep RetryTransient(PendingRead& pending, std::int64_t outcome) {
  if (++pending.fruitless < PendingRead::kMaxFruitless) return ReadStep::kContinue;
  return Finish(pending, Status::FromErrno(static_cast<int>(-outcome),
                                           fmt::format("{}; gave up after {} attempts",
                                                       Where(pending), pending.fruitless)));
}

ReadStep Begin(ReadRequest& request, PendingRead& pending) {
  if (request.buffer.empty()) return ReadStep::kDone;

  const std::uint64_t size = request.file->size_bytes();
  const std::uint64_t left = size > request.offset_bytes ? size - request.offset_bytes : 0;
  if (left >= request.buffer.size()) return ReadStep::kContinue;
  // Past the end of the file, only the padding of a direct read is allowed.
  if (left == 0 || request.file->alignment_bytes() == 1)
    return Finish(pending, Truncated(pending, size));
  pending.wanted_bytes = left;
  return ReadStep::kContinue;
}

ReadStep Complete(PendingRead& pending, std::int64_t outcome) {
  if (IsTransient(outcome)) return RetryTransient(pending, outcome);
  if (outcome < 0)
    return Finish(pending, Status::FromErrno(static_cast<int>(-outcome), Where(pending)));
  if (static_cast<std::uint64_t>(outcome) > pending.rest().size()) {
    return Finish(pending,
                  Status::IoError(fmt::format("{} returned {} bytes", Where(pending), outcome)));
  }
  const std::uint64_t end = pending.next_offset() + static_cast<std::uint64_t>(outcome);
  if (outcome == 0) return Finish(pending, Truncated(pending, end));

  const std::size_t arrived = pending.done_bytes + static_cast<std::size_t>(outcome);
  if (arrived >= pending.wanted_bytes) {
    pending.done_bytes = pending.wanted_bytes;
    return Finish(pending, Status::Ok());
  }
  // A direct read must continue at a multiple of the block size, so a partial block at the end of
  // the received bytes is read again.
  const std::size_t kept = AlignDown(arrived, pending.request->file->alignment_bytes());
  if (kept > pending.done_bytes) {
    pending.done_bytes = kept;
    pending.fruitless = 0;
    return ReadStep::kContinue;
  }
  // The same part of a block was returned again and again: the file ends inside it.
  if (++pending.fruitless < PendingRead::kMaxFruitless) return ReadStep::kContinue;
  return Finish(pending, Truncated(pending, end));
}

ReadStep ReadOnce(PendingRead& pending,
                  const std::function<std::int64_t(const ReadRequest&, std::int64_t)>& fault_hook) {
  Result<std::size_t> got = pending.request->file->ReadAt(pending.next_offset(), pending.rest());
  const std::int64_t real = got ? static_cast<std::int64_t>(*got) : -EIO;
  const std::int64_t outcome = fault_hook ? fault_hook(*pending.request, real) : real;
  if (!got && outcome == real)  // keep the file's own error message
    return Finish(pending, std::move(got).error());
  return Complete(pending, outcome);
}

}  // namespace

ReadStep BeginRead(ReadRequest& request, PendingRead& pending) noexcept {
  RHIZOME_CHECK(request.file != nullptr);
  pending = PendingRead{.request = &request, .wanted_bytes = request.buffer.size()};
  request.status = Status::Ok();
  try {
    return Begin(request, pending);
  } catch (...) {
    return FinishByException(pending);
  }
}

ReadStep CompleteRead(PendingRead& pending, std::int64_t outcome) noexcept {
  try {
    return Complete(pending, outcome);
  } catch (...) {
    return FinishByException(pending);
  }
}

std::uint64_t ReadInline(
    PendingRead& pending,
    const std::function<std::int64_t(const ReadRequest&, std::int64_t)>& fault_hook) noexcept {
  for (std::uint64_t resubmissions = 0;; ++resubmissions) {
    try {
      if (ReadOnce(pending, fault_hook) == ReadStep::kDone) return resubmissions;
    } catch (...) {
      FinishByException(pending);
      return resubmissions;
    }
  }
}

}  // namespace internal
}  // namespace rhizome
