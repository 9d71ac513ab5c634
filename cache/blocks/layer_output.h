#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/cache/bounded_queue.h"
#include "rhizome/cache/inference_log.h"
#include "rhizome/cache/labels.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/threads.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// An array as it came out of a layer: its entries and files, below `root`.
struct WrittenArray {
  Path root;
  std::vector<ArrayEntry> arrays;
  std::vector<FileEntry> files;
};

/// What was finished before, and who is told of what is finished now.
struct ChunkProgress {
  std::map<std::uint64_t, FinishedChunk> finished = {};

  /// On a writing thread, one at a time, when a chunk is on disk, in any order where there are
  /// several writers; may be empty.
  std::function<Status(std::uint64_t chunk, const FinishedChunk& finished)> tell = {};

  /// As a job's log knows it, and to be told it; `log` may be null.
  static ChunkProgress Of(InferenceLog* log, std::uint32_t layer);
};

/// Collects the rows that a layer computes, chunk by chunk; encodes each finished chunk, writes it
/// to disk and tells of it on threads of its own. Chunks are finished in bursts, at the end of a
/// block: some wait while others are written. Threads: rows may be filled from many threads; the
/// rest one at a time.
class LayerOutput {
 public:
  /// Writes below `root` (made if need be), on `writers` threads. `entry` has float32 rows in
  /// layout kChunk. Chunks that were finished are adopted. Without `root` nothing is written: only
  /// the counts matter.
  static Result<std::unique_ptr<LayerOutput>> Create(FileSystem& fs, const Path& root,
                                                     const ArrayEntry& entry,
                                                     ChunkProgress progress, std::uint32_t writers);

  /// Memory for chunks that are filled, wait and are written, and as they are encoded.
  static std::uint64_t Bytes(const ArrayEntry& entry, std::uint32_t writers);

  ~LayerOutput();

  /// Chunks that an earlier run finished, [chunk_count].
  const std::vector<bool>& done() const { return done_; }
  std::uint64_t adopted_chunks() const { return adopted_; }

  /// Takes a chunk that another process has finished. Before any is filled here, or instead.
  Status Adopt(std::uint64_t chunk, const FinishedChunk& finished);

  /// Regards all chunks but [begin, end) as done, for a process that only has a part to do.
  void LeaveOthers(std::uint64_t begin, std::uint64_t end);
  const ArrayEntry& entry() const { return entry_; }

  /// Room for rows [begin, begin + count) of the chunk that is being filled.
  std::span<float> Rows(Row begin, std::uint64_t count);

  /// The chunk is complete; `accuracy` counts its vertices. Waits while too many are not on disk.
  /// Errors: what went wrong with an earlier one.
  Status FinishChunk(std::uint64_t chunk, const AccuracyCounts& accuracy);

  /// Of all chunks, those of an earlier run included.
  const AccuracyCounts& accuracy() const { return accuracy_; }

  /// What was filled is on disk and told of. Errors: kIoError, kOutOfSpace.
  Status Complete() { return Join(); }

  /// All chunks are there: completes the array. Errors: kIoError, kOutOfSpace.
  Result<WrittenArray> Finish();

  /// After Complete: encoding and writing, of all threads.
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
  const std::uint64_t chunks_;  // held at once
  std::unique_ptr<ChunkArrayWriter> writer_;

  // Of the calling thread.
  std::vector<float> chunk_;
  std::uint64_t chunks_made_ = 1;
  std::vector<bool> done_;
  std::uint64_t adopted_ = 0;
  AccuracyCounts accuracy_;

  // Of the writing threads until they have ended.
  Mutex mutex_;
  std::function<Status(std::uint64_t, const FinishedChunk&)> tell_ RHIZOME_GUARDED_BY(mutex_);
  Status written_ RHIZOME_GUARDED_BY(mutex_);  // the first that went wrong
  std::atomic<double> write_seconds_ = 0;
  std::atomic<std::uint64_t> bytes_written_ = 0;

  // Self-synchronised.
  BoundedQueue<Finished> finished_;
  BoundedQueue<std::vector<float>> free_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace internal
}  // namespace rhizome
