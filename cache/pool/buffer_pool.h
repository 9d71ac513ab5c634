#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
  std::uint64_t prefill = 0;  ///< keys read or kept as prefill
  std::uint64_t kept = 0;     ///< prefill that the pool held already, from the previous trace
  std::uint64_t reads() const { return prefill + misses; }
};

/// A piece of memory divided into slots of one unit (a row, or a decoded chunk), and the policy
/// that says which of them stay. It moves no bytes from disk itself: a caller plans a step, reads
/// the misses, then fills the inserts.
///
/// A policy speaks of frames; a frame that is in use refers to a slot. A unit that a step holds,
/// hit or miss, stays in its slot until it is released, whatever happens to the frames meanwhile.
/// So a step computes on the pool's memory itself, without a copy, while the next steps are read.
/// Beyond the frames the pool needs slots only for the misses of the steps that are held at once,
/// because a miss takes one slot and either stays outside the frames or evicts another unit.
///
/// Policies number frames as if every trace began with an empty pool. Units of a new policy's
/// prefill that the pool still holds stay in their slots.
///
/// Threads: one at a time, except Release, SetStarved and Cancel, which any thread may call at any
/// time.
class BufferPool {
 public:
  BufferPool(BufferPool&&) noexcept;
  ~BufferPool();

  /// Reserves addresses for frame_count + max(room.most, room.slots) units of `frame_bytes` bytes,
  /// aligned for direct reads. Memory is taken as slots are used, with 16 bytes more for each.
  /// Errors: kOutOfMemory.
  static Result<BufferPool> Create(std::size_t frame_bytes, std::uint32_t frame_count,
                                   HoldRoom room = {});

  /// Starts a new trace (the next superbatch, the next layer); null: nothing is kept. Errors:
  /// kInvalidArgument, it prefills other frames than the pool has, one frame twice, or not in order
  /// of keys. Nothing is kept then.
  Status SetPolicy(std::unique_ptr<Policy> policy);

  /// Returns the prefill entries that the pool does not hold and that must be filled before the
  /// first step, sorted by key; where the policy says what is read, they are of those, unless units
  /// were forgotten. Call once after SetPolicy.
  std::vector<PrefillEntry> Prefill();

  /// Returns whether the policy says what of its prefill is read (Policy::PrefillReads).
  bool knows_reads() const { return policy_->PrefillReads().has_value(); }

  /// Announces the policy that will be set after this one; it must live until then. From now on
  /// frames that are done (StepPlan::done, of held steps) give their slots to the prefill of
  /// `next`. Where that says what it reads, nothing else is read ahead, and no miss is kept for it.
  void Announce(const Policy& next);
  bool announced() const { return ahead_ != nullptr; }

  /// Returns up to `most` prefill keys of the announced policy that can be read now, each with its
  /// slot, sorted by key. Returns none while fewer than `least` fit, unless they are the last.
  /// Prefill units that are in frames are taken over when their frames are done. The current policy
  /// loses nothing: the slots that are taken and the frames that its later steps need never exceed
  /// frame_count together. If a read fails, call Forget.
  std::vector<std::pair<CacheKey, SlotId>> TakeAhead(std::size_t least, std::size_t most);

  /// Returns how many of the `wanted` frames that Prefill returned may be filled at once; waits
  /// until at least `least` may.
  /// Errors: those of Hold.
  Result<std::size_t> WaitForRoom(std::size_t least, std::size_t wanted);

  /// Plans the next step. Errors: those of Policy::Step; kInvalidArgument, the policy names frames
  /// that the pool has not, or that nothing is in: it was made for another pool.
  Status Plan(std::span<const CacheKey> keys, StepPlan& plan);

  /// Returns the bytes of a frame that was filled.
  std::span<std::byte> frame(FrameId frame) const;

  /// Returns the memory of `frame`, to be filled with the unit of `key`. The frame's former unit is
  /// dropped, but stays in its slot while a step holds it.
  std::span<std::byte> Fill(CacheKey key, FrameId frame);

  /// Carries out a whole plan: sets slots[i] to the slot of keys[i]. A miss must be read into its
  /// slot before the next step is planned. Waits while the soft limit leaves no room and something
  /// is held. Errors: kInterrupted, cancelled; kOutOfMemory, more is held than there are addresses.
  Status Hold(std::span<const CacheKey> keys, const StepPlan& plan, std::vector<SlotId>& slots);

  /// Ends a Hold that succeeded.
  void Release(std::span<const SlotId> slots) { table_->Release(slots); }
  bool is_held() const { return table_->is_held(); }

  std::span<std::byte> slot(SlotId slot) const {
    return memory_.bytes().subspan(slot * frame_bytes_, frame_bytes_);
  }

  std::span<const std::byte> table() const { return memory_.bytes(); }

  /// Says whether the holder of slots is itself waiting for the next step. Waits for room end at
  /// once while it is.
  void SetStarved(bool starved) { table_->SetStarved(starved); }

  /// Ends every wait for room, now and later.
  void Cancel() { table_->Cancel(); }

  /// Waits until nothing is held, then returns the memory to the system; the next policy begins
  /// with an empty pool. Does nothing where the wait would never end (SetStarved, Cancel).
  void Discard();

  /// Forgets which units the slots hold, after a read into them failed.
  void Forget();

  std::size_t frame_bytes() const { return frame_bytes_; }
  std::uint32_t frame_count() const { return frame_count_; }
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
  // It does not follow from place_: schedules are built for it while Prefill exchanges that table.
  std::uint32_t frame_count_ = 0;
  std::uint64_t slot_count_ = 0;
  AlignedBuffer memory_;
  std::unique_ptr<SlotTable> table_;
  std::vector<SlotId> place_;     // by frame of the policy: its slot, or kNowhere
  std::vector<CacheKey> holds_;   // by slot that was ever used: the key of its unit
  std::vector<FrameId> done_;     // frames that were done, and perhaps filled again since
  std::deque<FrameId> waiting_;   // likewise, that the announced policy wants and has no share for
  std::vector<bool> is_done_;     // by frame
  std::unique_ptr<Ahead> ahead_;  // null: nothing is announced
  std::unique_ptr<Policy> policy_;
  PoolCounters counters_;
};

}  // namespace rhizome::inline internal
