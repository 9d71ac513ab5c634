#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "cache/blocks/chunk_feed.h"
#include "cache/feed/feature_decoder.h"
#include "cache/job/bounded_queue.h"
#include "index/graph/delta_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/export.h"
#include "rhizome/job_control.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A free list of buffers of one size, aligned for direct reads.
/// Threads: any; a buffer may be released on a different thread.
/// Ownership: buffers may outlive the list.
class FloatBuffers {
 public:
  explicit FloatBuffers(std::size_t size) : shared_(std::make_shared<Shared>(size)) {}

  /// Returns a buffer of `size` floats, uninitialised. Errors: kOutOfMemory.
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
  std::shared_ptr<Shared> shared_;  // shared with the buffers in use
};

struct ChunkReaderOptions {
  PolicyKind policy = PolicyKind::kBelady;

  /// Whether the chunks of a step that are cached when it begins are delivered first. Otherwise
  /// chunks are delivered in the order of the trace.
  bool cached_first = false;
  std::uint64_t cache_bytes = 0;
  std::uint32_t threads = 1;  ///< threads that read and decode
  bool direct = false;        ///< bypass the page cache
  std::size_t ahead = 2;      ///< max number of chunks read but not delivered; at least 1
};

struct ChunkReaderStats {
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;  ///< misses and prefill
  std::uint64_t hits = 0;
  std::uint64_t bytes_read = 0;
  double read_seconds = 0;  ///< reading, verifying and decoding, summed over threads
};

/// Delivers decoded chunks of an array in a sequence that is known in advance. Reads and decodes
/// ahead on its own threads, through a cache of whole chunks with any Policy; a key of the policy
/// is a chunk. Frames hold shared buffers, so chunks are never copied, and a chunk may be evicted
/// while a user still reads it. The chunks that are read depend only on the trace, not on the
/// threads.
///
/// Memory: the cache, plus WorkingBytes: chunks that are read ahead, evicted chunks that wait for
/// delivery, and the chunk that was delivered last.
/// Threads: Next one at a time.
/// Ownership: `array` and `control` must outlive it.
class ChunkReader final : public ChunkFeed {
 public:
  /// Creates a reader with a cache. `blocks` is the whole sequence; a step contains the chunks that
  /// are needed together. `decoder` converts the rows of `array` to floats. `delta`, or null, holds
  /// rows that differ from the array's, and new rows after them, which are divided into chunks like
  /// the array's.
  ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder, Trace blocks,
              const ChunkReaderOptions& options, const JobControl& control,
              std::shared_ptr<const DeltaRows> delta = nullptr);

  /// Creates a reader without a cache, which delivers the chunks that are appended. The sequence
  /// need not be known in advance.
  ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder,
              const ChunkReaderOptions& options, const JobControl& control,
              std::shared_ptr<const DeltaRows> delta = nullptr);
  ~ChunkReader() override;

  /// Returns whether the cache of a reader with these options can hold a chunk.
  static bool HasCache(const ArrayEntry& array, const ChunkReaderOptions& options) {
    return options.cache_bytes >= DecodedBytes(array);
  }

  /// Requires a reader without a cache. Must be called on the thread that calls Next.
  void Append(std::uint64_t chunk) override { appended_.push_back(static_cast<CacheKey>(chunk)); }

  /// With a cache, DecodedChunk::request is an index into the keys of the trace.
  Result<DecodedChunk> Next() override;

  /// Ends the threads and returns the statistics. Call after the whole sequence was delivered.
  ChunkReaderStats Finish();

  /// Returns the size of a decoded chunk of `array` in memory, in bytes.
  static std::uint64_t DecodedBytes(const ArrayEntry& array);

  /// Returns the memory for chunks outside the cache, if each delivered chunk is released before
  /// the next.
  static std::uint64_t WorkingBytes(const ArrayEntry& array, const ChunkReaderOptions& options);

  /// Returns how many chunks to read ahead to keep `threads` busy within about `bytes`.
  static std::size_t AheadFor(const ArrayEntry& array, std::uint32_t threads,
                              std::uint64_t bytes = std::uint64_t{16} << 20);

  /// Returns a sequence with one chunk per step.
  static Trace OneByOne(std::span<const std::uint64_t> chunks);

  /// Returns the sequence that the policy receives: one chunk per step unless options.cached_first.
  static Trace PolicySteps(Trace blocks, const ChunkReaderOptions& options);

 private:
  /// A chunk that is read or was read.
  struct Chunk {
    std::uint64_t number = 0;
    std::shared_ptr<const float[]> values;
    Status status;
    std::atomic<bool> ready = false;  // values and status are final
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
  /// Reusable memory of one reading thread.
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
  const std::size_t ahead_;  // max number of chunks read but not delivered
  const FileSystem::ReadOptions how_;

  // Used by the thread that calls Next.
  std::unique_ptr<Policy> policy_;  // null: no cache
  std::deque<CacheKey> appended_;
  std::vector<std::shared_ptr<Chunk>> frames_;
  std::deque<Request> requests_;  // waiting for delivery
  std::size_t next_step_ = 0;
  std::size_t reads_ahead_ = 0;
  StepPlan plan_;                   // the plan of the current step
  std::uint64_t step_first_ = 0;    // index of its first key
  std::size_t next_miss_ = 0;       // index into plan_.misses
  std::vector<FrameId> insert_at_;  // [keys of the step]: frame to insert into
  ChunkReaderStats stats_;

  // Self-synchronised.
  std::atomic<std::uint64_t> bytes_read_ = 0;
  std::atomic<double> read_seconds_ = 0;
  FloatBuffers buffers_;
  BoundedQueue<std::shared_ptr<Chunk>> scheduled_;
  std::vector<std::unique_ptr<Thread>> threads_;  // fewer if the system has no more threads
  Status started_;                                // of the threads; matters if none started
};

}  // namespace internal
}  // namespace rhizome
