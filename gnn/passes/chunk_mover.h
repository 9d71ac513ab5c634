#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cache/blocks/chunk_feed.h"
#include "cache/full_graph/planned_spill.h"
#include "cache/full_graph/spill_policy.h"
#include "cache/job/bounded_queue.h"
#include "gnn/passes/scratch_array.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

/// Moves the chunks of scratch arrays between memory and files during the passes of an epoch, as
/// its plan says. One thread walks over the accesses of a pass to chunks, in the order of the plan,
/// and asks the policy about each access, so that decisions depend on the plan alone and not on
/// timing. It runs ahead of the pass as far as the feeds' queues allow, and decides about a chunk
/// that will be written before the pass computes it. Other threads read and write files.
///
/// Invariants for each chunk, under `mutex_`:
///   (1) A chunk that is still needed is promised (decided about, but not computed yet), in memory
///       (`kept`), in a file, or queued to be written.
///   (2) A read of a chunk waits until a pending write of it is complete.
///   (3) `kept` is set for the chunks that the policy considers to be in memory, except for chunks
///       that an earlier process had there, which are loaded at their first use.
/// Threads: all functions are called from one thread; each feed is used by one thread.
/// Ownership: borrows all arguments.
class ChunkMover {
 public:
  /// Maximum number of chunks that wait to be written; one more is being written.
  static constexpr std::size_t kWaiting = 2;

  /// Maximum number of chunks that a feed has read and not delivered.
  static constexpr std::size_t kAhead = 2;

  /// `arrays`: indexed by id. They are empty when an epoch begins.
  ChunkMover(const PlannedSpill& plan, std::vector<ScratchArray*> arrays);
  ~ChunkMover() { Cancel(); }

  /// The point at which a pass begins: a chunk, when an earlier process has computed the rows of
  /// the chunks before it, and the block with which each aggregation begins.
  struct From {
    static constexpr std::int64_t kInOrder = -1;
    std::uint64_t chunk = 0;
    std::vector<std::int64_t> blocks = {};  ///< [reads] block, or kInOrder; empty: all
  };

  /// Begins the next pass, with `reads` reads of arrays. Returns when chunks that do not stay in
  /// memory for this pass have left it. Errors: kOutOfMemory, no thread can be started; errors of
  /// writing.
  Status Begin(std::size_t reads, From from);

  /// Skips the next pass, which an earlier process completed.
  void Skip();

  /// Returns the feed of a read of the pass. `read`: its number in the plan.
  std::unique_ptr<ChunkFeed> FeedOf(std::size_t read, const ScratchArray& array) const;

  /// Hands over a chunk that the pass has computed. Errors: any error of moving chunks.
  Status Made(ScratchArray& array, std::uint64_t chunk, std::shared_ptr<float[]> values);

  /// Ends the pass: waits until all chunks are moved, then drops the arrays that no later pass
  /// reads. Errors: any error of moving chunks.
  Status Finish();

  /// Writes the chunks that are only in memory and still needed, and waits for pending writes, so
  /// that another process can resume from here. Call it between two passes; or within a pass, if it
  /// was also called before that pass. Errors: errors of writing.
  Status Persist();

  /// Returns whether the current pass or a later one reads an array. Before the end of the first
  /// pass, returns true for all arrays.
  bool IsLive(const ScratchArray& array) const;

  /// Ends the pass early. Later calls of feeds fail.
  void Cancel();

  /// Returns the error that ended the pass, or OK.
  Status status() const;

  /// Returns the maximum bytes of the chunks that a feed holds at once.
  static std::uint64_t FeedBytes(const ScratchShape& shape) {
    return (kAhead + 1) * shape.LargestBytes();
  }

  /// Returns the maximum bytes of chunks that wait to be written or are being written.
  /// `largest_bytes`: size of the largest chunk.
  static std::uint64_t WriterBytes(std::uint64_t largest_bytes) {
    return (kWaiting + 2) * largest_bytes;
  }

 private:
  /// A chunk that is in memory, or will be when `ready` is set.
  struct InMemory {
    std::shared_ptr<float[]> made;          // null unless this process computed it
    std::shared_ptr<const float[]> values;  // the rows, for readers
    Status status;
    std::atomic<bool> ready = false;  // values and status are final
  };
  struct Delivered {
    std::uint64_t chunk = 0;
    std::shared_ptr<InMemory> memory;
  };
  using Delivery = BoundedQueue<Delivered>;
  class Feed;

  struct Slot {
    std::shared_ptr<InMemory> kept;
    bool promised = false;
    bool keep = false;   // if promised: keep it once it is computed
    bool write = false;  // if promised: write it once it is computed
    bool writing = false;
  };
  struct Task {
    ArrayId array = 0;
    std::uint32_t chunk = 0;
    std::shared_ptr<InMemory> memory;
  };

  Status Walk();
  bool Acts(const ChunkAccess& access) const;
  Status Read(const ChunkAccess& access);
  Status Promise(const ChunkAccess& access);
  Status Leave();
  Status QueueWrite(const Task& task) RHIZOME_REQUIRES(mutex_);
  Status Start(Status (ChunkMover::*work)());
  Status Load();
  Status Store();
  Status PersistChunk(ScratchArray& array, std::uint64_t chunk);
  bool TakeLoad(Task& task);
  bool TakeStore(Task& task);
  void Fail(const Status& status);
  void RemoveDead();

  Slot& SlotOf(ArrayId array, std::uint64_t chunk) RHIZOME_REQUIRES(mutex_) {
    return slots_[array][chunk];
  }

  // Constant after construction.
  const PlannedSpill& plan_;
  const std::vector<ScratchArray*> arrays_;

  // Constant during a pass.
  std::size_t next_pass_ = 0;
  From from_;
  std::vector<ChunkAccess> accesses_;
  std::vector<std::shared_ptr<Delivery>> deliveries_;  // [reads]

  // Used by the walking thread, and between passes.
  const std::unique_ptr<SpillPolicy> policy_;
  std::vector<LeavingChunk> leaves_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::vector<Slot>> slots_ RHIZOME_GUARDED_BY(mutex_);  // [arrays][chunks]
  std::deque<Task> loads_ RHIZOME_GUARDED_BY(mutex_);
  std::deque<Task> stores_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t storing_ RHIZOME_GUARDED_BY(mutex_) = 0;  // tasks that the writing thread has taken
  bool begun_ RHIZOME_GUARDED_BY(mutex_) = false;  // Walk has queued the chunks to be written first
  bool ended_ RHIZOME_GUARDED_BY(mutex_) = true;   // no more tasks will come
  Status status_ RHIZOME_GUARDED_BY(mutex_);

  std::vector<std::unique_ptr<Thread>> threads_;  // the walking thread is the first
};

}  // namespace internal
}  // namespace rhizome
