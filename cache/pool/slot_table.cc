#include "cache/pool/slot_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

Result<std::size_t> SlotTable::WaitForSpace(std::size_t least, std::size_t wanted) {
  const MutexLock lock(mutex_);
  while (Room() < least && holders_ > 0 && !starved_ && !cancelled_) changed_.Wait(mutex_);
  if (cancelled_) return Fail(Status::Interrupted("stopped"));
  const std::size_t room = Room() >= least ? Room() : most_ - used_;
  if (room < least) {
    return Fail(Status::OutOfMemory(fmt::format(
        "a pool of {} slots has {} in use, but {} more are needed; hold fewer rows at once", most_,
        used_, least)));
  }
  return std::min(wanted, room);
}

std::size_t SlotTable::room() const {
  const MutexLock lock(mutex_);
  return Room();
}

SlotId SlotTable::TakeOne() {
  RHIZOME_CHECK(used_ < most_);
  SlotId slot = 0;
  if (free_.empty()) {
    slot = static_cast<SlotId>(names_.size());
    names_.push_back(0);
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  RHIZOME_DCHECK(names_[slot] == 0);
  ++used_;
  names_[slot] = 1;
  RHIZOME_DCHECK(used_ + free_.size() == names_.size());
  return slot;
}

void SlotTable::DropOne(SlotId slot) {
  RHIZOME_CHECK(names_[slot] > 0);
  if (--names_[slot] > 0) return;
  free_.push_back(slot);
  --used_;
  RHIZOME_DCHECK(used_ + free_.size() == names_.size());
}

void SlotTable::DropUsedFromFree() {
  std::size_t kept = 0;
  for (const SlotId slot : free_) {
    if (names_[slot] == 0) free_[kept++] = slot;
  }
  free_.resize(kept);
  RHIZOME_DCHECK(used_ + free_.size() == names_.size() && used_ <= most_);
}

void SlotTable::Take(std::span<SlotId> slots) {
  const MutexLock lock(mutex_);
  for (SlotId& slot : slots) slot = TakeOne();
}

void SlotTable::Rename(std::span<const SlotId> add, std::span<const SlotId> drop) {
  const MutexLock lock(mutex_);
  bool revived = false;
  for (const SlotId slot : add) {
    RHIZOME_DCHECK(slot < names_.size());
    if (names_[slot]++ > 0) continue;
    revived = true;
    ++used_;
  }
  if (revived) DropUsedFromFree();
  for (const SlotId slot : drop) DropOne(slot);
  changed_.NotifyAll();
}

SlotId SlotTable::Own(SlotId slot) {
  const MutexLock lock(mutex_);
  if (slot == kNowhere) return TakeOne();
  if (names_[slot] == 1) return slot;
  DropOne(slot);
  return TakeOne();
}

void SlotTable::Hold() {
  const MutexLock lock(mutex_);
  ++holders_;
}

void SlotTable::Release(std::span<const SlotId> slots) {
  const MutexLock lock(mutex_);
  for (const SlotId slot : slots) DropOne(slot);
  RHIZOME_DCHECK(holders_ != 0);
  --holders_;
  changed_.NotifyAll();
}

bool SlotTable::is_held() const {
  const MutexLock lock(mutex_);
  return holders_ > 0;
}

bool SlotTable::WaitUntilReleased() {
  const MutexLock lock(mutex_);
  while (holders_ > 0 && !starved_ && !cancelled_) changed_.Wait(mutex_);
  return holders_ == 0;
}

void SlotTable::SetStarved(bool starved) {
  const MutexLock lock(mutex_);
  starved_ = starved;
  changed_.NotifyAll();
}

void SlotTable::Cancel() {
  const MutexLock lock(mutex_);
  cancelled_ = true;
  changed_.NotifyAll();
}

}  // namespace internal
}  // namespace rhizome
