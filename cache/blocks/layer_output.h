#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/blocks/inference_log.h"
#include "cache/feed/labels.h"
#include "cache/job/bounded_queue.h"
#include "rhizome/chunk_array.h"
#include "rhizome/export.h"
#include "rhizome/status.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The array that a layer wrote: its entries and files, below `root`.
struct WrittenArray {
  Path root;
  std::vector<ArrayEntry> arrays;
  std::vector<FileEntry> files;
};

/// Chunks that were finished before, and a callback for newly finished chunks.
struct ChunkProgress {
  std::map<std::uint64_t, FinishedChunk> finished = {};

  /// Called when a chunk is on disk, on a writing thread, one call at a time. With several writers,
  /// chunks are reported in any order. May be empty.
  std::function<Status(std::uint64_t chunk, const FinishedChunk& finished)> tell = {};

  /// Uses the finished chunks of a job's log and reports new ones to it; `log` may be null.
  static ChunkProgress Of(InferenceLog* log, std::uint32_t layer);
};

/// Collects the rows that a layer computes, chunk by chunk. Encodes each finished chunk, writes it
/// to disk and reports it, on separate threads. Chunks are finished in bursts, at the end of a
/// block, so some wait while others are written.
/// Threads: rows may be filled from many threads; all other functions one thread at a time.
class LayerOutput {
 public:
  /// Creates the array below `root` (created if necessary), to be written on `writers` threads.
  /// `entry` must have float32 rows in layout kChunk. Finished chunks are adopted. If `root` is
  /// empty, no chunk is written and only the counts are kept. Errors: kCorruption, `progress` has a
  /// chunk that the array does not have; kIoError; kOutOfSpace.
  static Result<std::unique_ptr<LayerOutput>> Create(FileSystem& fs, const Path& root,
                                                     const ArrayEntry& entry,
                                                     ChunkProgress progress, std::uint32_t writers);

  /// Returns the memory for chunks that are filled, waiting or being written, and for their
  /// encoding.
  static std::uint64_t Bytes(const ArrayEntry& entry, std::uint32_t writers);

  ~LayerOutput();

  /// Chunks that an earlier run finished, [chunk_count]; true also for chunks left to other
  /// processes.
  const std::vector<bool>& done() const { return done_; }
  std::uint64_t adopted_chunks() const { return adopted_; }

  /// Adopts a chunk that another process has finished. Must be called before any chunk is filled
  /// here.
  Status Adopt(std::uint64_t chunk, const FinishedChunk& finished);

  /// Marks all chunks outside [begin, end) as done, for a process that computes only a part.
  void LeaveOthers(std::uint64_t begin, std::uint64_t end);
  const ArrayEntry& entry() const { return entry_; }

  /// Returns the memory of rows [begin, begin + count) in the current chunk, [count, dim].
  std::span<float> Rows(Row begin, std::uint64_t count);

  /// Finishes the current chunk; `accuracy` counts its vertices. Waits while too many chunks are
  /// not on disk. Errors: any error of writing an earlier chunk.
  Status FinishChunk(std::uint64_t chunk, const AccuracyCounts& accuracy);

  /// Accuracy over all chunks, including chunks of an earlier run.
  const AccuracyCounts& accuracy() const { return accuracy_; }

  /// After Finish: number of rows with a NaN or infinite value, over all written chunks including
  /// chunks of an earlier run.
  std::uint64_t non_finite_rows() const { return non_finite_rows_; }

  /// Waits until all finished chunks are on disk and reported. Errors: kIoError, kOutOfSpace.
  Status Complete() { return Join(); }

  /// Completes the array; all chunks must be finished. Errors: kIoError, kOutOfSpace.
  Result<WrittenArray> Finish();

  /// After Complete: time of encoding and writing, summed over threads.
  double write_seconds() const { return write_seconds_; }
  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  struct Finished {
    std::uint64_t chunk = 0;
    AccuracyCounts accuracy;
    std::vector<float> values;
  };

  LayerOutput(const ArrayEntry& entry, std::uint32_t writers);
  Status WriteFinished();
  Status Write(const Finished& finished) RHIZOME_EXCLUDES(mutex_);
  Status Join() RHIZOME_EXCLUDES(mutex_);

  // Constant after Create.
  Path root_;
  const ArrayEntry entry_;
  const std::uint64_t chunks_;  // number of chunks held at once
  std::unique_ptr<ChunkArrayWriter> writer_;

  // Used by the calling thread.
  std::vector<float> chunk_;
  std::uint64_t chunks_made_ = 1;
  std::vector<bool> done_;
  std::uint64_t adopted_ = 0;
  AccuracyCounts accuracy_;

  // Used by the writing threads until they have ended.
  Mutex mutex_;
  std::function<Status(std::uint64_t, const FinishedChunk&)> tell_ RHIZOME_GUARDED_BY(mutex_);
  Status written_ RHIZOME_GUARDED_BY(mutex_);  // the first error
  std::atomic<double> write_seconds_ = 0;
  std::atomic<std::uint64_t> bytes_written_ = 0;
  std::atomic<std::uint64_t> non_finite_rows_ = 0;

  // Self-synchronised.
  BoundedQueue<Finished> finished_;
  BoundedQueue<std::vector<float>> free_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace internal
}  // namespace rhizome
