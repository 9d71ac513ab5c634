#include "storage/io/io_queue.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "storage/base/little_endian.h"
#include "storage/io/io_completion.h"

namespace rhizome {
namespace {

// Buffers of at least this size request huge pages (of 2 MiB on x86-64).
constexpr std::size_t kHugeBytes = std::size_t{4} << 20;

Status CheckOptions(const IoQueueOptions& options) {
  if (options.depth < 1 || options.depth > 4096) {
    return Status::InvalidArgument(
        fmt::format("queue depth {} is not in [1, 4096]", options.depth));
  }
  if (options.pread_threads < 1 || options.pread_threads > 256) {
    return Status::InvalidArgument(
        fmt::format("{} pread threads are not in [1, 256]", options.pread_threads));
  }
  return {};
}

}  // namespace

std::string_view IoMakerName(IoMaker maker) {
  switch (maker) {
    case IoMaker::kAuto:
      return "auto";
    case IoMaker::kUring:
      return "uring";
    case IoMaker::kPread:
      return "pread";
    case IoMaker::kMapped:
      return "mmap";
  }
  return "unknown";
}

Result<std::unique_ptr<IoQueue>> IoQueue::Open(const IoQueueOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  if (options.maker == IoMaker::kPread) return OpenPreadQueue(options);
  if (options.maker == IoMaker::kMapped) return OpenMappedQueue(options);
  Result<std::unique_ptr<IoQueue>> uring = OpenUringQueue(options);
  if (uring || options.maker == IoMaker::kUring) return uring;
  return OpenPreadQueue(options);
}

Status IoQueue::ReadAll(std::span<ReadRequest> requests) {
  std::span<ReadRequest> rest = requests;
  while (!rest.empty() || in_flight() > 0) {
    if (!rest.empty()) {
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t started, Submit(rest));
      rest = rest.subspan(started);
    }
    // While requests are left, wait for an eighth of the reads in flight; at the end, wait for all.
    const std::size_t wait = rest.empty() ? in_flight() : std::max<std::size_t>(in_flight() / 8, 1);
    RHIZOME_RETURN_IF_ERROR(Reap(wait));
  }
  for (const ReadRequest& request : requests) {
    if (!request.status.ok()) return request.status;
  }
  return {};
}

Result<AlignedBuffer> AlignedBuffer::Allocate(std::size_t size_bytes) {
  AlignedBuffer buffer;
  if (size_bytes == 0) return buffer;
  void* memory = nullptr;
  if (size_bytes <= SIZE_MAX - kAlignmentBytes)
    memory = std::aligned_alloc(kAlignmentBytes, AlignUp(size_bytes, kAlignmentBytes));
  if (memory == nullptr) {
    return Fail(Status::OutOfMemory(fmt::format("no memory for a buffer of {} bytes", size_bytes)));
  }
  // The disk fills large buffers faster than the kernel provides pages of 4 KiB.
  if (size_bytes >= kHugeBytes) static_cast<void>(::madvise(memory, size_bytes, MADV_HUGEPAGE));
  buffer.data_.reset(static_cast<std::byte*>(memory));
  buffer.size_bytes_ = size_bytes;
  return buffer;
}

Result<AlignedBuffer> AlignedBuffer::Reserve(std::size_t size_bytes, std::size_t sure_bytes) {
  AlignedBuffer buffer;
  if (size_bytes == 0) return buffer;
  constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const memory =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, kPrivate | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) {
    buffer.data_ = {static_cast<std::byte*>(memory), Free{size_bytes}};
    buffer.size_bytes_ = size_bytes;
  }
  // This second mapping lacks MAP_NORESERVE, so the kernel checks that it has the memory.
  if (memory == MAP_FAILED ||
      (sure_bytes > 0 && ::mmap(memory, sure_bytes, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED,
                                -1, 0) == MAP_FAILED)) {
    return Fail(Status::OutOfMemory(
        fmt::format("no memory for a buffer of {} bytes, or no address space for {} bytes",
                    sure_bytes, size_bytes)));
  }
  if (size_bytes >= kHugeBytes) static_cast<void>(::madvise(memory, size_bytes, MADV_HUGEPAGE));
  return buffer;
}

void AlignedBuffer::GiveBack() {
  const std::size_t mapped_bytes = data_.get_deleter().mapped_bytes;
  if (mapped_bytes > 0) static_cast<void>(::madvise(data_.get(), mapped_bytes, MADV_DONTNEED));
}

void AlignedBuffer::Free::operator()(std::byte* data) const {
  if (mapped_bytes == 0) {
    std::free(data);
  } else {
    ::munmap(data, mapped_bytes);
  }
}

}  // namespace rhizome
