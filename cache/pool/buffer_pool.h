#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cache/pool/slot_table.h"
#include "rhizome/feature_cache.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {

struct PoolCounters {
  std::uint64_t requests = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t prefill = 0;  ///< keys of prefills, both read and kept
  std::uint64_t kept = 0;     ///< keys of prefills that the pool already held from the previous
                              ///< trace
  std::uint64_t reads() const { return prefill + misses; }
};

/// Memory that is divided into slots of one unit (a row, or a decoded chunk), with a policy that
/// decides which units are cached. The pool does not read from disk itself: the caller plans a
/// step, reads the misses, then fills the inserts.
///
/// Policies use frames; a frame that is in use refers to a slot. A unit that a step holds, hit or
/// miss, remains in its slot until it is released, even if frames change. A step therefore computes
/// directly on the pool's memory, without a copy, while the next steps are read. In addition to the
/// frames, the pool needs slots only for the misses of steps that are held at the same time,
/// because each miss takes one slot and either remains outside the frames or evicts another unit.
///
/// Policies number frames as if each trace began with an empty pool. Units of a new policy's
/// prefill that the pool still holds keep their slots.
///
/// Threads: one at a time, except Release, SetStarved and Cancel, which any thread may call at any
/// time.
class BufferPool {
 public:
  BufferPool(BufferPool&&) noexcept;
  ~BufferPool();

  /// Reserves addresses for the frames and for the hard limit of held units, each of `frame_bytes`
  /// bytes, aligned for direct reads. Memory is allocated when slots are first used, with another
  /// 16 bytes per slot.
  /// Errors: kOutOfMemory.
  static Result<BufferPool> Create(std::size_t frame_bytes, std::uint32_t frame_count,
                                   HoldLimits room = {});

  /// Starts a new trace (the next superbatch or the next layer). Null: no unit is cached. Errors:
  /// kInvalidArgument, the prefill uses frames that the pool does not have, uses a frame twice, or
  /// is not sorted by key. In that case no unit is cached.
  Status SetPolicy(std::unique_ptr<Policy> policy);

  /// Returns the prefill entries that are not in the pool and must be filled before the first step,
  /// sorted by key. If the policy lists its reads, the entries are a subset of that list, unless
  /// units were forgotten. Call once after SetPolicy.
  std::vector<PrefillEntry> Prefill();

  /// Returns whether the policy lists which prefill keys are read (Policy::PrefillReads).
  bool knows_reads() const { return policy_->PrefillReads().has_value(); }

  /// Announces the next policy, which must live until it is set. From now on, frames that are done
  /// (StepPlan::done, of held steps) release their slots for the prefill of `next`. If `next` lists
  /// its reads, only these are read ahead, and no miss is kept for it.
  void Announce(const Policy& next);
  bool announced() const { return ahead_ != nullptr; }

  /// Returns up to `most` prefill keys of the announced policy that can be read now, each with its
  /// slot, sorted by key. Returns none while fewer than `least` fit, unless these are the last.
  /// Prefill units that are in frames are taken over when their frames are done. The current policy
  /// is not affected: these slots and the frames that its later steps need never exceed frame_count
  /// together. If a read fails, call Forget.
  std::vector<std::pair<CacheKey, SlotId>> TakeAhead(std::size_t least, std::size_t most);

  /// Returns how many of the `wanted` frames returned by Prefill may be filled at once. Waits until
  /// at least `least` may be filled.
  /// Errors: as Hold.
  Result<std::size_t> WaitForSpace(std::size_t least, std::size_t wanted);

  /// Plans the next step. Errors: as Policy::Step; kInvalidArgument, the policy uses frames that
  /// the pool does not have or that are empty, because it was made for another pool.
  Status Plan(std::span<const CacheKey> keys, StepPlan& plan);

  /// Returns the bytes of a frame that was filled.
  std::span<std::byte> frame(FrameId frame) const;

  /// Returns the memory of `frame`, to be filled with the unit of `key`. The former unit of the
  /// frame is dropped, but remains in its slot while a step holds it.
  std::span<std::byte> Fill(CacheKey key, FrameId frame);

  /// Carries out a whole plan: sets slots[i] to the slot of keys[i]. Misses must be read into their
  /// slots before the next step is planned. Waits while the soft limit leaves no space and a step
  /// is held. Errors: kInterrupted, cancelled; kOutOfMemory, more units are held than addresses
  /// were reserved for.
  Status Hold(std::span<const CacheKey> keys, const StepPlan& plan, std::vector<SlotId>& slots);

  /// Ends a Hold that succeeded.
  void Release(std::span<const SlotId> slots) { table_->Release(slots); }
  bool is_held() const { return table_->is_held(); }

  std::span<std::byte> slot(SlotId slot) const {
    return memory_.bytes().subspan(slot * frame_bytes_, frame_bytes_);
  }

  std::span<const std::byte> table() const { return memory_.bytes(); }

  /// Sets whether the holder of slots is itself waiting for the next step. While it is, waits for
  /// space end at once.
  void SetStarved(bool starved) { table_->SetStarved(starved); }

  /// Ends all waits for space, now and later.
  void Cancel() { table_->Cancel(); }

  /// Waits until no step is held, then returns the memory to the system; the next policy begins
  /// with an empty pool. Does nothing if the wait would never end (SetStarved, Cancel).
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
  // Not derived from place_: schedules are built for it while Prefill exchanges that table.
  std::uint32_t frame_count_ = 0;
  std::uint64_t slot_count_ = 0;
  AlignedBuffer memory_;
  std::unique_ptr<SlotTable> table_;
  std::vector<SlotId> place_;     // by frame of the policy: its slot, or kNowhere
  std::vector<CacheKey> holds_;   // by slot: the key of its unit
  std::vector<FrameId> done_;     // frames that are done, possibly refilled since
  std::deque<FrameId> waiting_;   // done frames that the announced policy wants, but has no share
                                  // for
  std::vector<bool> is_done_;     // by frame
  std::unique_ptr<Ahead> ahead_;  // null: no policy is announced
  std::unique_ptr<Policy> policy_;
  PoolCounters counters_;
};

}  // namespace internal
}  // namespace rhizome
