#include "storage/array/read_cost.h"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/file_system.h"
#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"
#include "storage/io/io_queue.h"
#include "storage/io/stored_file.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kSmallBytes = 4096;
constexpr std::uint64_t kLargeBytes = std::uint64_t{1} << 20;

// A measurement takes about this long, even on a slow disk.
constexpr double kSeconds = 0.02;

// Max number of files that are opened; enough to cover several regions of the disk.
constexpr std::uint64_t kMaxFiles = 64;

// The depths that MeasureDepth tries. It returns the first that is within 5 % of the fastest.
constexpr std::array<std::uint32_t, 4> kDepths = {16, 32, 64, 128};
constexpr double kAboutAsFast = 1.05;

class Probe {
 public:
  static Result<Probe> Open(const ChunkArray& array, const IoQueueOptions& io) {
    Probe probe;
    const std::uint64_t chunks = array.slots().size();
    const std::uint64_t stride = std::max<std::uint64_t>((chunks + kMaxFiles - 1) / kMaxFiles, 1);
    for (std::uint64_t slot = 0; slot < chunks; slot += stride) {
      const FileEntry& entry = **array.ChunkFile(array.slots().ChunkAt(slot));
      if (entry.size_bytes < kLargeBytes) continue;
      RHIZOME_ASSIGN_OR_RETURN(auto file,
                               OpenStored(array.fs(), array.root() / entry.path, {.direct = true}));
      if (file->size_bytes() >= kLargeBytes) probe.files_.push_back(std::move(file));
    }
    RHIZOME_RETURN_IF_ERROR(probe.UseQueue(io));
    return probe;
  }

  Status UseQueue(const IoQueueOptions& io) {
    RHIZOME_ASSIGN_OR_RETURN(queue_, IoQueue::Open(io));
    return Status::Ok();
  }

  bool empty() const { return files_.empty(); }

  /// Measures the seconds per read of `bytes` bytes when `batch` reads are submitted at a time.
  Result<double> Measure(std::uint64_t bytes, std::size_t batch) {
    RHIZOME_ASSIGN_OR_RETURN(const AlignedBuffer memory, AlignedBuffer::Allocate(batch * bytes));
    std::vector<ReadRequest> requests(batch);
    std::uint64_t reads = 0;
    double seconds = 0;
    const Stopwatch watch;
    do {
      for (std::size_t i = 0; i < batch; ++i) {
        ReadableFile& file = *files_[random_() % files_.size()];
        const std::uint64_t places = file.size_bytes() / bytes;
        requests[i] = {.file = &file,
                       .offset_bytes = random_() % places * bytes,
                       .buffer = memory.bytes().subspan(i * bytes, bytes),
                       .status = {}};
      }
      RHIZOME_RETURN_IF_ERROR(queue_->ReadAll(requests));
      reads += batch;
      seconds = watch.seconds();
    } while (seconds < kSeconds);
    return seconds / static_cast<double>(reads);
  }

 private:
  std::vector<std::unique_ptr<ReadableFile>> files_;
  std::unique_ptr<IoQueue> queue_;
  std::mt19937_64 random_{1};  // the positions of reads affect only their timing
};

}  // namespace

Result<ReadCost> MeasureReadCost(const ChunkArray& array, const IoQueueOptions& io) try {
  ReadCost cost;
  const ArrayEntry& entry = array.entry();
  if (entry.rows * entry.row_bytes() < kMinMeasuredBytes) return cost;
  RHIZOME_ASSIGN_OR_RETURN(Probe probe, Probe::Open(array, io));
  if (probe.empty()) return cost;
  RHIZOME_ASSIGN_OR_RETURN(const double small, probe.Measure(kSmallBytes, 256));
  RHIZOME_ASSIGN_OR_RETURN(const double large, probe.Measure(kLargeBytes, 8));
  // small = fixed + 4 KiB / bandwidth, large = fixed + 1 MiB / bandwidth.
  const double per_byte =
      std::max(large - small, 1e-9) / static_cast<double>(kLargeBytes - kSmallBytes);
  cost.bytes_per_second = 1 / per_byte;
  cost.seconds_per_read = std::max(small - per_byte * static_cast<double>(kSmallBytes), small / 10);
  return cost;
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::uint32_t> MeasureDepth(const ChunkArray& array, const IoQueueOptions& io) try {
  const ArrayEntry& entry = array.entry();
  if (entry.rows * entry.row_bytes() < kMinMeasuredBytes) return io.depth;
  RHIZOME_ASSIGN_OR_RETURN(Probe probe, Probe::Open(array, io));
  if (probe.empty()) return io.depth;
  std::vector<double> seconds;
  for (const std::uint32_t depth : kDepths) {
    IoQueueOptions tried = io;
    tried.depth = depth;
    RHIZOME_RETURN_IF_ERROR(probe.UseQueue(tried));
    RHIZOME_ASSIGN_OR_RETURN(const double one, probe.Measure(kSmallBytes, 4 * depth));
    seconds.push_back(one);
  }
  const double least = *std::min_element(seconds.begin(), seconds.end());
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (seconds[i] <= least * kAboutAsFast) return kDepths[i];
  return io.depth;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
