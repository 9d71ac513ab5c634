#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "rhizome/cache/bounded_queue.h"
#include "rhizome/cache/chunk_feed.h"
#include "rhizome/gnn/scratch_array.h"
#include "rhizome/storage/threads.h"

namespace rhizome::inline internal {

/// Reads chunks of a scratch array ahead, on threads of its own.
/// Ownership: `array` must outlive it.
class ScratchReader final : public ChunkFeed {
 public:
  /// `ahead`: limit of chunks that are read and not delivered, at least 1.
  ScratchReader(ScratchArray& array, std::size_t ahead);
  ~ScratchReader() override;

  void Append(std::uint64_t chunk) override { appended_.push_back(chunk); }
  Result<DecodedChunk> Next() override;

  /// Bytes of the chunks that are held at once.
  static std::uint64_t Bytes(const ScratchShape& shape, std::size_t ahead) {
    return (ahead + 1) * shape.LargestBytes();
  }

 private:
  struct Chunk {
    std::uint64_t number = 0;
    std::shared_ptr<const float[]> values;
    Status status;
    std::atomic<bool> ready = false;  // values and status are final
  };
  Status ReadScheduled();

  ScratchArray& array_;
  const std::size_t ahead_;
  std::deque<std::uint64_t> appended_;
  std::deque<std::shared_ptr<Chunk>> waiting_;  // for delivery
  std::uint64_t delivered_ = 0;
  BoundedQueue<std::shared_ptr<Chunk>> scheduled_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

/// Writes chunks of scratch arrays on a thread of its own.
/// Threads: one at a time.
class ScratchWriter {
 public:
  /// Chunks that wait to be written; one more is being written.
  static constexpr std::size_t kWaiting = 2;

  ScratchWriter();
  ~ScratchWriter() { static_cast<void>(Finish()); }

  /// Errors: those of writing an earlier chunk.
  Status Write(ScratchArray& array, std::uint64_t chunk, std::shared_ptr<float[]> values);

  /// Waits until all is written. Errors: those of ScratchArray::Write.
  Status Finish();

 private:
  struct Task {
    ScratchArray* array = nullptr;
    std::uint64_t chunk = 0;
    std::shared_ptr<float[]> values;
  };
  Status WriteTasks();

  BoundedQueue<Task> tasks_{kWaiting};
  Thread thread_;
  Status started_;
};

/// The rows of a matrix in order, as chunks of whatever size deliver them.
/// Threads: one at a time.
class RowStream {
 public:
  /// The matrix has `rows` rows of `dim` floats, and its chunks have `chunk_rows` rows.
  RowStream(std::unique_ptr<ChunkFeed> feed, std::uint64_t rows, std::uint64_t dim,
            std::uint64_t chunk_rows);

  /// Returns rows [first, first + count), which follow those of the call before; valid until the
  /// next call. Errors: those of ChunkFeed::Next.
  Result<const float*> Take(std::uint64_t first, std::uint64_t count);

  std::uint64_t dim() const { return dim_; }

 private:
  const std::unique_ptr<ChunkFeed> feed_;
  const std::uint64_t dim_;
  DecodedChunk current_;
  std::vector<float> joined_;  // rows of several chunks
};

}  // namespace rhizome::inline internal
