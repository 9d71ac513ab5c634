#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "rhizome/cache/bounded_queue.h"
#include "rhizome/cache/chunk_feed.h"
#include "rhizome/cache/planned_spill.h"
#include "rhizome/cache/spill_policy.h"
#include "rhizome/gnn/scratch_array.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/threads.h"

namespace rhizome::inline internal {

/// Moves the chunks of scratch arrays between memory and files through the passes of an epoch, as
/// its plan says. A thread walks over what a pass does to chunks, in the order of the plan, and
/// asks the policy about each: so that what is decided depends on the plan alone, not on how fast
/// anything is. It goes ahead of the pass as far as the feeds have room; a chunk that is to be
/// written is decided about before it is made. Other threads read and write.
///
/// Invariants, of each chunk, under `mutex_`:
///   (1) it is promised (decided about, not made), in memory (`kept`), or in a file, or a writer
///       has it on the way there; else nobody needs it;
///   (2) a read of it waits while a writer has it;
///   (3) `kept` is what the policy believes to be in memory, but for a chunk that an earlier
///       process had there, which is loaded when it is asked for.
/// Threads: functions are called from one; feeds each from one.
/// Ownership: borrows all that it is given.
class ChunkMover {
 public:
  /// Chunks that wait to be written; one more is being written.
  static constexpr std::size_t kWaiting = 2;

  /// Chunks that a feed has read and not delivered.
  static constexpr std::size_t kAhead = 2;

  /// `arrays`: by id. An epoch begins with all of them empty.
  ChunkMover(const PlannedSpill& plan, std::vector<ScratchArray*> arrays);
  ~ChunkMover() { Cancel(); }

  /// The place where a pass begins: the rows of a chunk, as an earlier process made those before
  /// it, and each read that gathers with a block.
  struct From {
    static constexpr std::int64_t kInOrder = -1;
    std::uint64_t chunk = 0;
    std::vector<std::int64_t> blocks = {};  ///< [reads] or kInOrder; empty: all from the first
  };

  /// Begins the next pass, which reads so many arrays, when the memory of what does not stay for it
  /// is free. Errors: kOutOfMemory, no thread; those of writing.
  Status Begin(std::size_t reads, From from);

  /// Leaves out the next pass, which an earlier process finished.
  void Skip();

  /// Returns the feed of a read of the pass, by the number that it has in the plan.
  std::unique_ptr<ChunkFeed> FeedOf(std::size_t read, const ScratchArray& array) const;

  /// Gives a chunk that the pass has made. Errors: those of all that is moved.
  Status Made(ScratchArray& array, std::uint64_t chunk, std::shared_ptr<float[]> values);

  /// Ends the pass: waits until all is moved; then what no later pass reads is gone. Errors:
  /// likewise.
  Status Finish();

  /// Writes to files what is in memory alone and will be needed, and waits for what is on its way
  /// there, so that another process can go on from here. Between two passes, of all arrays; in a
  /// pass of those that it makes, if that was done before it. Errors: those of writing.
  Status Persist();

  /// Returns whether a pass that is not finished needs an array, or has begun to make it.
  bool IsLive(const ScratchArray& array) const;

  /// Ends the pass early. Feeds fail from then on.
  void Cancel();

  /// The error that ended the pass, if one did.
  Status status() const;

  /// Bytes of the chunks that a feed holds at once.
  static std::uint64_t FeedBytes(const ScratchShape& shape) {
    return (kAhead + 1) * shape.LargestBytes();
  }

  /// Bytes of chunks on the way to files, of which the largest has so many.
  static std::uint64_t WriterBytes(std::uint64_t largest_bytes) {
    return (kWaiting + 2) * largest_bytes;
  }

 private:
  /// A chunk that is in memory, or will be when it is ready.
  struct InMemory {
    std::shared_ptr<float[]> made;          // by this process
    std::shared_ptr<const float[]> values;  // what is read
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
    bool keep = false;   // promised: to be kept when it is made
    bool write = false;  // promised: to be written
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
  std::vector<std::shared_ptr<Delivery>> deliveries_;  // by read

  // Used by the walking thread, and between passes.
  const std::unique_ptr<SpillPolicy> policy_;
  std::vector<LeavingChunk> leaves_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::vector<Slot>> slots_ RHIZOME_GUARDED_BY(mutex_);  // [arrays][chunks]
  std::deque<Task> loads_ RHIZOME_GUARDED_BY(mutex_);
  std::deque<Task> stores_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t storing_ RHIZOME_GUARDED_BY(mutex_) = 0;  // tasks that the thread has taken
  bool begun_ RHIZOME_GUARDED_BY(mutex_) = false;         // what does not stay is on its way
  bool ended_ RHIZOME_GUARDED_BY(mutex_) = true;          // no more tasks will come
  Status status_ RHIZOME_GUARDED_BY(mutex_);

  std::vector<std::unique_ptr<Thread>> threads_;  // the walking one, then others
};

}  // namespace rhizome::inline internal
