#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/cache/bounded_queue.h"
#include "rhizome/cache/feature_decoder.h"
#include "rhizome/cache/policy.h"
#include "rhizome/index/delta_rows.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/threads.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Buffers of one size that are used again and again, aligned for direct reads. Threads: any; a
/// buffer may be let go on another thread than took it. Ownership: buffers may outlive it.
class FloatBuffers {
 public:
  explicit FloatBuffers(std::size_t size) : shared_(std::make_shared<Shared>(size)) {}

  /// Errors: kOutOfMemory.
  Result<std::shared_ptr<float[]>> Take();

 private:
  struct Shared {
    explicit Shared(std::size_t count) : size(count) {}
    const std::size_t size;
    Mutex mutex;
    std::vector<AlignedBuffer> free RHIZOME_GUARDED_BY(mutex);
  };
  struct Held {
    Held(AlignedBuffer taken, std::shared_ptr<Shared> from)
        : buffer(std::move(taken)), shared(std::move(from)) {}
    ~Held() {
      MutexLock lock(shared->mutex);
      shared->free.push_back(std::move(buffer));
    }
    AlignedBuffer buffer;
    std::shared_ptr<Shared> shared;
  };
  std::shared_ptr<Shared> shared_;  // shared with the buffers that are out
};

/// One decoded chunk: rows [first_row, first_row + rows) as floats.
struct DecodedChunk {
  std::uint64_t request = 0;  ///< index into the keys of the trace
  std::uint64_t chunk = 0;
  Row first_row = 0;
  std::uint64_t rows = 0;
  std::shared_ptr<const float[]> values;  ///< [rows, dim]
};

struct ChunkReaderOptions {
  PolicyKind policy = PolicyKind::kBelady;

  /// Of a step the chunks that the cache holds when it begins are served first, then the others are
  /// read; else they come as the trace names them.
  bool cached_first = false;
  std::uint64_t cache_bytes = 0;
  std::uint32_t threads = 1;  ///< that read and decode
  bool direct = false;        ///< not through the page cache
  std::size_t ahead = 2;      ///< chunks that are read and not delivered, at most; at least 1
};

struct ChunkReaderStats {
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;  ///< misses and prefill
  std::uint64_t hits = 0;
  std::uint64_t bytes_read = 0;
  double read_seconds = 0;  ///< reading, checking and decoding, of all threads
};

/// Delivers decoded chunks of an array in a sequence that is known beforehand, reading and decoding
/// ahead on threads of its own, through a cache of whole chunks that any Policy drives: the unit of
/// Belady's schedule is the chunk here. Frames hold shared buffers, so that a chunk is never copied
/// and may be replaced while its last user still reads it. What is read depends on the trace alone,
/// not on threads. Memory: the cache, and WorkingBytes: chunks that are ahead, the frames that they
/// took of others which wait to be delivered, and the one that was delivered last. Threads: Next
/// one at a time. Ownership: `array` and `control` must outlive it.
class ChunkReader {
 public:
  /// `blocks`: the whole sequence, a step for what is wanted together. `array` has float rows as
  /// `decoder` says. `delta`: rows that differ from the array's, and further ones behind them, in
  /// chunks as if they were the array's; or null.
  ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder, Trace blocks,
              const ChunkReaderOptions& options, const JobControl& control,
              std::shared_ptr<const DeltaRows> delta = nullptr);

  /// Without a cache: nothing need be known beforehand. Delivers what is appended.
  ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder,
              const ChunkReaderOptions& options, const JobControl& control,
              std::shared_ptr<const DeltaRows> delta = nullptr);
  ~ChunkReader();

  /// Is there room for a chunk in the cache of such a reader?
  static bool HasCache(const ArrayEntry& array, const ChunkReaderOptions& options) {
    return options.cache_bytes >= DecodedBytes(array);
  }

  /// A chunk that is wanted after those before; of the thread that calls Next.
  void Append(std::uint64_t chunk) { appended_.push_back(static_cast<CacheKey>(chunk)); }

  /// The next chunk of the sequence. Errors: kCorruption, kIoError, kInterrupted.
  Result<DecodedChunk> Next();

  /// To be called when the whole sequence was delivered.
  ChunkReaderStats Finish();

  /// Bytes of memory that a chunk of `array` takes when decoded.
  static std::uint64_t DecodedBytes(const ArrayEntry& array);

  /// Memory for chunks beside the cache, if one that was delivered is let go before the next.
  static std::uint64_t WorkingBytes(const ArrayEntry& array, const ChunkReaderOptions& options);

  /// As many chunks ahead as keep `threads` busy in about `bytes` of them.
  static std::size_t AheadFor(const ArrayEntry& array, std::uint32_t threads,
                              std::uint64_t bytes = std::uint64_t{16} << 20);

  /// A sequence of which nothing is wanted together.
  static Trace OneByOne(std::span<const std::uint64_t> chunks);

  /// The sequence that the policy sees.
  static Trace PolicySteps(Trace blocks, const ChunkReaderOptions& options);

 private:
  /// A chunk that is read, or was.
  struct Chunk {
    std::uint64_t number = 0;
    std::shared_ptr<const float[]> values;
    Status status;
    std::atomic<bool> ready = false;  // the two above may be read
  };
  struct Request {
    std::uint64_t index = 0;
    std::shared_ptr<Chunk> chunk;
    bool was_read = false;
  };

  ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder,
              const ChunkReaderOptions& options, const JobControl& control,
              std::shared_ptr<const DeltaRows> delta, Trace steps);
  void StartThreads(std::size_t threads);
  Status LookAhead();
  Status StartStep();
  void ScheduleMiss();
  void ScheduleAppended();
  std::shared_ptr<Chunk> Schedule(CacheKey key);
  void ReadScheduled();
  /// Memory of one reading thread, used again and again.
  struct Memory {
    AlignedBuffer encoded;
    std::vector<std::byte> stored;
  };
  Status Read(Chunk& chunk, Memory& memory);
  Result<std::uint64_t> ReadStored(std::uint64_t chunk, std::span<std::byte> rows, Memory& memory);
  std::uint64_t RowsInChunk(std::uint64_t chunk) const;

  // Constant after construction.
  const ChunkArray& array_;
  const FeatureDecoder decoder_;
  const std::shared_ptr<const DeltaRows> delta_;
  const JobControl& control_;
  const Trace steps_;
  const std::size_t ahead_;  // chunks that are read and not delivered, at most
  const FileSystem::ReadOptions how_;

  // Of the thread that calls Next.
  std::unique_ptr<Policy> policy_;  // null: no cache
  std::deque<CacheKey> appended_;
  std::vector<std::shared_ptr<Chunk>> frames_;
  std::deque<Request> requests_;  // to be delivered
  std::size_t next_step_ = 0;
  std::size_t reads_ahead_ = 0;
  StepPlan plan_;                   // of the step that was begun last
  std::uint64_t step_first_ = 0;    // its first key
  std::size_t next_miss_ = 0;       // into plan_.misses
  std::vector<FrameId> insert_at_;  // [keys of the step]
  ChunkReaderStats stats_;

  // Self-synchronised.
  std::atomic<std::uint64_t> bytes_read_ = 0;
  std::atomic<double> read_seconds_ = 0;
  FloatBuffers buffers_;
  BoundedQueue<std::shared_ptr<Chunk>> scheduled_;
  std::vector<std::unique_ptr<Thread>> threads_;  // fewer where the system gives no more
  Status started_;                                // of the threads; matters where there is none
};

}  // namespace internal
}  // namespace rhizome
