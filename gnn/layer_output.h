#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "rhizome/gnn/bounded_queue.h"
#include "rhizome/gnn/inference_log.h"
#include "rhizome/gnn/labels.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// An array as it came out of a layer: its entries and files, below `root`.
struct WrittenArray {
  Path root;
  std::vector<ArrayEntry> arrays;
  std::vector<FileEntry> files;
};

/// What was finished before, and who is told of what is finished now.
struct ChunkProgress {
  std::map<std::uint64_t, FinishedChunk> finished = {};

  /// On the writing thread, when a chunk is on disk; may be empty.
  std::function<Status(std::uint64_t chunk, const FinishedChunk& finished)> tell = {};

  /// As a job's log knows it, and to be told it; `log` may be null.
  static ChunkProgress Of(InferenceLog* log, std::uint32_t layer);
};

/// Collects the rows that a layer computes, chunk by chunk; encodes each finished chunk, writes it
/// to disk and tells of it on a thread of its own. Memory: kChunks chunks, and one encoded.
/// Threads: rows may be filled from many threads; the rest one at a time.
class LayerOutput {
 public:
  /// Chunks held at once: one that is filled, one that is written.
  static constexpr std::uint64_t kChunks = 2;

  /// Writes below `root` (made if need be). `entry` has float32 rows in layout kChunk. Chunks that
  /// were finished are adopted. Without `root` nothing is written: only the counts matter.
  static Result<std::unique_ptr<LayerOutput>> Create(FileSystem& fs, const Path& root,
                                                     const ArrayEntry& entry,
                                                     ChunkProgress progress);
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

  /// The chunk is complete; `accuracy` counts its vertices. Waits for the one before to be on disk.
  /// Errors: what went wrong with an earlier one.
  Status FinishChunk(std::uint64_t chunk, const AccuracyCounts& accuracy);

  /// Of all chunks, those of an earlier run included.
  const AccuracyCounts& accuracy() const { return accuracy_; }

  /// What was filled is on disk and told of. Errors: kIoError, kOutOfSpace.
  Status Complete() { return Join(); }

  /// All chunks are there: completes the array. Errors: kIoError, kOutOfSpace.
  Result<WrittenArray> Finish();

  double write_seconds() const { return write_seconds_; }  ///< after Complete: encoding and writing

 private:
  struct Finished {
    std::uint64_t chunk = 0;
    AccuracyCounts accuracy;
    std::vector<float> values;
  };

  LayerOutput() = default;
  Status WriteFinished();
  Status Write(const Finished& finished);
  Status Join();

  // Constant after Create.
  Path root_;
  ArrayEntry entry_;

  // Of the calling thread.
  std::vector<float> chunk_;
  std::uint64_t chunks_made_ = 1;
  std::vector<bool> done_;
  std::uint64_t adopted_ = 0;
  AccuracyCounts accuracy_;

  // Of the writing thread until it has ended.
  std::function<Status(std::uint64_t, const FinishedChunk&)> tell_;
  std::unique_ptr<ChunkArrayWriter> writer_;
  Status written_;
  double write_seconds_ = 0;

  // Self-synchronised.
  BoundedQueue<Finished> finished_{1};
  BoundedQueue<std::vector<float>> free_{kChunks};
  std::thread thread_;
};

}  // namespace rhizome
