#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/cache/hold_room.h"
#include "rhizome/storage/process.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

inline constexpr SlotId kNowhere = std::numeric_limits<SlotId>::max();

/// Which slots of a pool are free, and how many frames and holders name each of the others. A slot
/// whose last name goes is free; which is taken next is one that was used before, while there are
/// any, so that no more memory is touched than was needed at once.
///
/// Threads: Release, SetStarved and Cancel from any, all else from one at a time.
class SlotTable {
 public:
  /// Holders wait while `calm` slots are used; there are `most`.
  SlotTable(std::size_t calm, std::size_t most) : calm_(calm), most_(most) {}

  /// How many of `wanted` slots may be taken: at least `least`, 1 <= least <= wanted. Waits for
  /// them, unless nothing is held, or whoever holds is waiting too.
  /// Errors: kInterrupted, cancelled; kOutOfMemory, there are no more.
  Result<std::size_t> WaitForRoom(std::size_t least, std::size_t wanted);

  /// How many may be taken now without anybody waiting for it later.
  std::size_t room() const;

  /// Takes slots, one name each.
  void Take(std::span<SlotId> slots);

  /// One name more for each of `add` (free ones are taken thereby), then one less for each of
  /// `drop`.
  void Rename(std::span<const SlotId> add, std::span<const SlotId> drop);

  /// `slot`, if it has this one name only; else another in its place, taken. kNowhere may be given.
  SlotId Own(SlotId slot);

  /// One more holder, whose slots have been named; and one less, whose names go.
  void Hold();
  void Release(std::span<const SlotId> slots);
  bool is_held() const;

  /// Waits until nothing is held, or whoever holds is waiting too, or cancelled. False: something
  /// is held.
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
  std::vector<std::uint32_t> names_ RHIZOME_GUARDED_BY(mutex_);  // by slot that was ever used
  std::vector<SlotId> free_ RHIZOME_GUARDED_BY(mutex_);          // of those
  std::size_t used_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::size_t holders_ RHIZOME_GUARDED_BY(mutex_) = 0;
  bool starved_ RHIZOME_GUARDED_BY(mutex_) = false;
  bool cancelled_ RHIZOME_GUARDED_BY(mutex_) = false;
};

}  // namespace rhizome::inline internal
