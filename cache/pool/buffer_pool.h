#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/cache/hold_room.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/slot_table.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

struct PoolCounters {
  std::uint64_t requests = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t prefill = 0;  ///< filled before a first step
  std::uint64_t kept = 0;     ///< prefill that was in the pool already, from the trace before
  std::uint64_t reads() const { return prefill + misses; }
};

/// A piece of memory divided into slots of one unit (a row, or a decoded chunk), and the policy
/// that says which of them stay. It moves no bytes from disk itself: a caller plans a step, reads
/// the misses, then fills the inserts.
///
/// A policy speaks of frames; each frame with something in it names a slot. What a step holds, hit
/// or miss, stays in its slot until it is released, whatever becomes of the frames in between: a
/// step computes on the pool itself, with no copy, while the next are read. Beside the frames there
/// need be room only for the misses of the steps that are held at once, as a miss takes one slot,
/// and either stays outside the frames or drives another out.
///
/// Policies name frames as if every trace began with an empty pool. What the pool still holds of a
/// new policy's prefill stays where it lies.
///
/// Threads: one at a time, but for Release, SetStarved and Cancel, which any may call at any time.
class BufferPool {
 public:
  BufferPool(BufferPool&&) noexcept;
  ~BufferPool();

  /// Addresses for frame_count + room.most units, aligned for direct reads; memory as they are
  /// used, 16 bytes more for each. Errors: kOutOfMemory.
  static Result<BufferPool> Create(std::size_t frame_bytes, std::uint32_t frame_count,
                                   HoldRoom room = {});

  /// Starts a new trace (the next superbatch, the next layer); null: nothing is kept. Errors:
  /// kInvalidArgument, it prefills other frames than the pool has, one frame twice, or not in order
  /// of keys. Nothing is kept then.
  Status SetPolicy(std::unique_ptr<Policy> policy);

  /// What must be filled in before the first step. Call once after SetPolicy.
  std::vector<PrefillEntry> Prefill();

  /// `next` is the policy that will be set after this one; it must live until then. From now on
  /// frames that are done (StepPlan; of steps that were held) give their slots to what it prefills.
  /// A policy that SetPolicy would refuse is not announced.
  void Announce(const Policy& next);
  bool announced() const { return ahead_ != nullptr; }

  /// Of the prefill of the policy that was announced, up to `most` keys to be read now, each with
  /// its slot, sorted by key; none, if that can not be `least` yet, but for the last of all. What
  /// frames hold of it is kept, as they are done. The policy of now loses nothing: what is taken,
  /// and what its steps to come need, are never more than frame_count together. If a read fails,
  /// call Forget.
  std::vector<std::pair<CacheKey, SlotId>> TakeAhead(std::size_t least, std::size_t most);

  /// Of `wanted` frames that Prefill named, how many may be filled at once; waits for one.
  /// Errors: as Hold.
  Result<std::size_t> WaitForRoom(std::size_t wanted);

  /// Plans the next step. Errors: those of Policy::Step; kInvalidArgument, the policy names frames
  /// that the pool has not, or that nothing is in: it was made for another pool.
  Status Plan(std::span<const CacheKey> keys, StepPlan& plan);

  /// What is in a frame that was filled. Stops the process where none was.
  std::span<std::byte> frame(FrameId frame) const;

  /// The frame, to be filled with what belongs to `key`; what it held is gone, unless a step holds
  /// it too.
  std::span<std::byte> Fill(CacheKey key, FrameId frame);

  /// Carries out a plan, all at once: slots[i] is where keys[i] lies, or, if it is a miss, where it
  /// is to be read to before the next step is planned. Waits for room, but not where nothing is
  /// held. Errors: kInterrupted, cancelled; kOutOfMemory, more is held than there are addresses.
  Status Hold(std::span<const CacheKey> keys, const StepPlan& plan, std::vector<SlotId>& slots);

  /// Ends a Hold that succeeded.
  void Release(std::span<const SlotId> slots) { table_->Release(slots); }
  bool is_held() const { return table_->is_held(); }

  std::span<std::byte> slot(SlotId slot) const {
    return memory_.bytes().subspan(slot * frame_bytes_, frame_bytes_);
  }

  std::span<const std::byte> table() const { return memory_.bytes(); }

  /// Whoever would release waits for the next step: nobody waits for room meanwhile.
  void SetStarved(bool starved) { table_->SetStarved(starved); }

  /// Ends every wait for room, now and later.
  void Cancel() { table_->Cancel(); }

  /// Waits until nothing is held and gives the memory back to the system; a new policy begins with
  /// an empty pool. Does nothing where a wait would not end (SetStarved, Cancel).
  void Discard();

  /// What frames hold is not known any more, as a read failed.
  void Forget();

  std::size_t frame_bytes() const { return frame_bytes_; }
  std::uint32_t frame_count() const { return static_cast<std::uint32_t>(place_.size()); }
  std::uint64_t slot_count() const { return slot_count_; }
  const PoolCounters& counters() const { return counters_; }

 private:
  struct Ahead;
  BufferPool();
  bool CanCarryOut(const StepPlan& plan, std::size_t keys) const;
  void SetHolds(SlotId slot, CacheKey key);
  void Enter(CacheKey key, FrameId frame);
  void SetDone(std::span<const FrameId> frames);
  void EmptyDoneFrames();
  void KeepMisses(std::span<const std::uint32_t> misses, std::span<const SlotId> slots,
                  std::vector<SlotId>& named);
  std::size_t SpareSlots() const;

  std::size_t frame_bytes_ = 0;
  std::uint64_t slot_count_ = 0;
  AlignedBuffer memory_;
  std::unique_ptr<SlotTable> table_;
  std::vector<SlotId> place_;     // by the policy's frame: where it lies, or kNowhere
  std::vector<CacheKey> holds_;   // by slot that was ever used: whose bytes are there
  std::vector<FrameId> done_;     // frames that were done, and perhaps filled again since
  std::vector<bool> is_done_;     // by frame
  std::unique_ptr<Ahead> ahead_;  // null: nothing is announced
  std::unique_ptr<Policy> policy_;
  PoolCounters counters_;
};

}  // namespace rhizome::inline internal
