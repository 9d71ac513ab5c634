#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/gnn/bounded_queue.h"
#include "rhizome/gnn/feature_rows.h"
#include "rhizome/index/delta_rows.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Buffers of one size that are used again and again. Threads: any; a buffer may be let go on
/// another thread than took it. Ownership: buffers may outlive it.
class FloatBuffers {
 public:
  explicit FloatBuffers(std::size_t size) : shared_(std::make_shared<Shared>(size)) {}
  std::shared_ptr<float[]> Take();

 private:
  struct Shared {
    explicit Shared(std::size_t count) : size(count) {}
    const std::size_t size;
    Mutex mutex;
    std::vector<std::unique_ptr<float[]>> free RHIZOME_GUARDED_BY(mutex);
  };
  std::shared_ptr<Shared> shared_;  // shared with the buffers that are out
};

/// One decoded chunk: rows [first_row, first_row + rows) as floats.
struct DecodedChunk {
  std::uint64_t chunk = 0;
  Row first_row = 0;
  std::uint64_t rows = 0;
  std::shared_ptr<const float[]> values;  ///< [rows, dim]
};

struct ChunkReaderOptions {
  PolicyKind policy = PolicyKind::kBelady;
  std::uint64_t cache_bytes = 0;
};

struct ChunkReaderStats {
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;  ///< misses and prefill
  std::uint64_t hits = 0;
  std::uint64_t bytes_read = 0;
};

/// Delivers decoded chunks of an array in a sequence that is known beforehand, reading ahead on a
/// thread of its own, through a cache of whole chunks that any Policy drives: the unit of Belady's
/// schedule is the chunk here. Frames hold shared buffers, so that a chunk is never copied and may
/// be replaced while its last user still reads it. Memory: the cache, kReadAhead + 2 chunks beside
/// it.
/// Threads: Next one at a time. Ownership: `array` and `control` must outlive it.
class ChunkReader {
 public:
  static constexpr std::size_t kReadAhead = 2;

  /// `chunks`: the whole sequence. `array` has float rows as `decoder` says. `delta`: rows that
  /// differ from the array's, and further ones behind them, in chunks as if they were the array's;
  /// or null.
  ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder,
              std::vector<std::uint64_t> chunks, const ChunkReaderOptions& options,
              const JobControl& control, std::shared_ptr<const DeltaRows> delta = nullptr);
  ~ChunkReader();

  /// The next chunk of the sequence. Errors: kCorruption, kIoError, kInterrupted.
  Result<DecodedChunk> Next();

  /// Call when the whole sequence was delivered.
  ChunkReaderStats stats() const { return stats_; }

  /// Bytes of memory that a chunk of `array` takes when decoded.
  static std::uint64_t DecodedBytes(const ArrayEntry& array);

 private:
  Status ReadAll();
  Result<std::shared_ptr<const float[]>> ReadChunk(std::uint64_t chunk);
  Result<std::uint64_t> ReadStored(std::uint64_t chunk, std::span<std::byte> rows);
  std::uint64_t RowsInChunk(std::uint64_t chunk) const;

  // Constant after construction.
  const ChunkArray& array_;
  const FeatureDecoder decoder_;
  const std::shared_ptr<const DeltaRows> delta_;
  const JobControl& control_;
  const std::vector<std::uint64_t> chunks_;

  // The reading thread's; stats_ may be read by others once the sequence has ended.
  std::unique_ptr<Policy> policy_;
  std::vector<std::shared_ptr<const float[]>> frames_;
  std::vector<std::byte> stored_;
  ChunkReaderStats stats_;

  // Self-synchronised.
  FloatBuffers buffers_;
  BoundedQueue<DecodedChunk> queue_{kReadAhead};
  std::thread thread_;
};

}  // namespace rhizome
