#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "rhizome/storage/io_completion.h"

namespace rhizome::inline internal {
namespace {

/// Copies out of mapped files, whose pages are read as the processor faults on them, as trainers
/// without I/O of their own do. It is a baseline for benchmarks: a file that shrinks ends the
/// process (SIGBUS). Submit does the reads. Threads: as IoQueue.
class MappedQueue : public IoQueue {
 public:
  explicit MappedQueue(std::size_t depth) : depth_(depth) {}
  ~MappedQueue() override {
    for (const auto& [path, bytes] : files_) ::munmap(bytes.data(), bytes.size());
  }

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
    RHIZOME_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, BytesOf(*request.file));
    if (request.offset_bytes > bytes.size() ||
        request.buffer.size() > bytes.size() - request.offset_bytes) {
      return Status::IoError(fmt::format("'{}': {} bytes at offset {} are not all in the file",
                                         request.file->path().string(), request.buffer.size(),
                                         request.offset_bytes));
    }
    std::memcpy(request.buffer.data(), bytes.data() + request.offset_bytes, request.buffer.size());
    return {};
  }

  /// Mappings are kept by path, since the caller may close a file and open it again.
  Result<std::span<std::byte>> BytesOf(const ReadableFile& file) {
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

  const std::size_t depth_;
  std::unordered_map<std::string, std::span<std::byte>> files_;
  std::vector<ReadRequest*> finished_;
  std::vector<ReadRequest*> reaped_;
  IoMeter meter_;
};

}  // namespace

std::unique_ptr<IoQueue> OpenMappedQueue(const IoQueueOptions& options) {
  return std::make_unique<MappedQueue>(options.depth);
}

}  // namespace rhizome::inline internal
