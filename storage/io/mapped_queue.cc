#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "storage/io/io_completion.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Copies from memory-mapped files, in Submit. A baseline for benchmarks. Threads: as for IoQueue.
class MappedQueue : public IoQueue {
 public:
  explicit MappedQueue(std::size_t depth) : depth_(depth) {}

  void RegisterMemory(std::span<std::byte>) override {}

  Result<std::size_t> Submit(std::span<ReadRequest> requests) override {
    const std::size_t count = std::min(requests.size(), depth_ - finished_.size());
    for (ReadRequest& request : requests.first(count)) {
      request.status = Copy(request);
      finished_.push_back(&request);
      meter_.Completed(request, 1);
    }
    return count;
  }

  Result<std::span<ReadRequest* const>> Reap(std::size_t) override {
    reaped_.clear();
    reaped_.swap(finished_);
    return std::span<ReadRequest* const>(reaped_);
  }

  std::size_t in_flight() const override { return finished_.size(); }
  IoMaker maker() const override { return IoMaker::kMapped; }
  IoStats stats() const override { return meter_.stats(); }

 private:
  Status Copy(const ReadRequest& request) {
    RHIZOME_ASSIGN_OR_RETURN(const auto bytes, files_.BytesOf(*request.file));
    RHIZOME_ASSIGN_OR_RETURN(
        const auto part, PartOf(*request.file, bytes, request.offset_bytes, request.buffer.size()));
    std::memcpy(request.buffer.data(), part.data(), part.size());
    return {};
  }

  const std::size_t depth_;
  MappedFiles files_;
  std::vector<ReadRequest*> finished_;
  std::vector<ReadRequest*> reaped_;
  IoMeter meter_;
};

}  // namespace

MappedFiles::~MappedFiles() {
  for (const auto& [path, bytes] : files_) ::munmap(bytes.data(), bytes.size());
}

Result<std::span<const std::byte>> MappedFiles::BytesOf(const ReadableFile& file) {
  const auto [found, added] = files_.try_emplace(file.path().string());
  if (!added) return found->second;
  void* const memory =
      ::mmap(nullptr, file.size_bytes(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    files_.erase(found);
    return Fail(Status::FromErrno(error, "map " + file.path().string()));
  }
  ::madvise(memory, file.size_bytes(), MADV_RANDOM);
  found->second = {static_cast<std::byte*>(memory), file.size_bytes()};
  return found->second;
}

Result<std::span<const std::byte>> PartOf(const ReadableFile& file,
                                          std::span<const std::byte> bytes, std::uint64_t offset,
                                          std::size_t count) {
  if (offset <= bytes.size() && count <= bytes.size() - offset) return bytes.subspan(offset, count);
  return Fail(
      Status::Corruption(fmt::format("'{}' ends before the {} bytes at offset {} (truncated)",
                                     file.path().string(), count, offset)));
}

std::unique_ptr<IoQueue> OpenMappedQueue(const IoQueueOptions& options) {
  return std::make_unique<MappedQueue>(options.depth);
}

}  // namespace internal
}  // namespace rhizome
