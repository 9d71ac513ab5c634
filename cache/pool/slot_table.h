#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/feature_cache.h"
#include "rhizome/status.h"
#include "storage/base/process.h"

namespace rhizome {
inline namespace internal {

inline constexpr SlotId kNowhere = std::numeric_limits<SlotId>::max();

/// Counts the references to each slot of a pool, from frames and from holders. A slot is free once
/// its last reference is dropped. Free slots that were used before are reused first, so that only
/// the memory needed at one time is touched.
///
/// Threads: any thread may call Release, SetStarved and Cancel; all other functions one thread at a
/// time.
class SlotTable {
 public:
  /// `calm` is the soft limit: above it, callers wait while slots are held. `most` is the hard
  /// limit.
  SlotTable(std::size_t calm, std::size_t most) : calm_(calm), most_(most) {}

  /// Returns how many of `wanted` slots may be taken, at least `least` (1 <= least <= wanted).
  /// Waits until that many are free, unless no slot is held or the holder itself is waiting.
  /// Errors: kInterrupted, cancelled; kOutOfMemory, fewer than `least` are left below the hard
  /// limit.
  Result<std::size_t> WaitForSpace(std::size_t least, std::size_t wanted);

  /// Returns how many slots may be taken below the soft limit.
  std::size_t room() const;

  /// Takes slots with one reference each.
  void Take(std::span<SlotId> slots);

  /// Adds a reference to each slot of `add` (taking those that were free), then drops one reference
  /// from each slot of `drop`.
  void Rename(std::span<const SlotId> add, std::span<const SlotId> drop);

  /// Returns `slot` if it has only this one reference. Otherwise drops the reference and takes
  /// another slot. For kNowhere, takes a slot.
  SlotId Own(SlotId slot);

  /// Hold registers a holder, whose references were added before. Release removes a holder and its
  /// references.
  void Hold();
  void Release(std::span<const SlotId> slots);
  bool is_held() const;

  /// Waits until no slot is held, the holder itself is waiting, or the table is cancelled. Returns
  /// whether no slot is held.
  bool WaitUntilReleased();

  void SetStarved(bool starved);
  void Cancel();

 private:
  SlotId TakeOne() RHIZOME_REQUIRES(mutex_);
  void DropOne(SlotId slot) RHIZOME_REQUIRES(mutex_);
  void DropUsedFromFree() RHIZOME_REQUIRES(mutex_);
  std::size_t Room() const RHIZOME_REQUIRES(mutex_) { return used_ < calm_ ? calm_ - used_ : 0; }

  const std::size_t calm_;
  const std::size_t most_;
  mutable ForkMutex mutex_;
  CondVar changed_;
  std::vector<std::uint32_t> names_ RHIZOME_GUARDED_BY(mutex_);  // by slot: number of references
  std::vector<SlotId> free_ RHIZOME_GUARDED_BY(mutex_);          // free slots that were used before
  std::size_t used_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::size_t holders_ RHIZOME_GUARDED_BY(mutex_) = 0;
  bool starved_ RHIZOME_GUARDED_BY(mutex_) = false;
  bool cancelled_ RHIZOME_GUARDED_BY(mutex_) = false;
};

}  // namespace internal
}  // namespace rhizome
