#include "cache/pool/buffer_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/policy/basic_policies.h"
#include "cache/policy/key_index.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr CacheKey kNothing = -1;

/// Returns whether each request of a step is listed exactly once, as a hit or as a miss.
bool NamesEachRequestOnce(const StepPlan& plan, std::size_t requests) {
  std::vector<bool> named(requests);
  const auto name = [&](std::uint32_t request) {
    if (request >= requests || named[request]) return false;
    named[request] = true;
    return true;
  };
  return plan.hits.size() + plan.misses.size() == requests &&
         std::all_of(plan.misses.begin(), plan.misses.end(), name) &&
         std::all_of(plan.hits.begin(), plan.hits.end(),
                     [&](const StepPlan::Place& hit) { return name(hit.request); });
}

Status NotOfThisPool(std::size_t frames) {
  return Status::InvalidArgument(fmt::format(
      "the cache policy was created for another pool than this one of {} frames", frames));
}

/// Checks that the prefill fits into `frames` frames, with at most one key per frame, sorted by
/// key.
Status CheckPrefill(std::span<const PrefillEntry> prefill, std::size_t frames) {
  if (prefill.size() > frames) return NotOfThisPool(frames);
  std::vector<bool> named(frames);
  CacheKey before = kNothing;
  for (const auto& [key, frame] : prefill) {
    if (frame >= frames || named[frame] || key <= before) return NotOfThisPool(frames);
    named[frame] = true;
    before = key;
  }
  return Status::Ok();
}

}  // namespace

/// State of the announced policy's prefill: which entries are in the pool already.
struct BufferPool::Ahead {
  enum class State : std::uint8_t {
    kMissing,
    kInFrame,  // is or was in a frame; if it is evicted before the switch, it is read then
    kTaken,    // has a slot in `slots`
  };

  Ahead(std::span<const PrefillEntry> prefill,
        const std::optional<std::span<const CacheKey>>& reads)
      : entries(prefill),
        index(prefill),
        knows_reads(reads.has_value()),
        states(prefill.size(), knows_reads ? State::kInFrame : State::kMissing),
        missing(knows_reads ? 0 : prefill.size()) {
    if (!reads) return;
    for (const CacheKey key : *reads) {
      const std::size_t at = index.Find(key);
      if (at == KeyIndex::kAbsent || states[at] == State::kMissing) continue;
      states[at] = State::kMissing;
      ++missing;
    }
  }

  /// Records that the key was put into a frame.
  void Enter(CacheKey key) {
    if (knows_reads) return;
    const std::size_t at = index.Find(key);
    if (at == KeyIndex::kAbsent || states[at] != State::kMissing) return;
    states[at] = State::kInFrame;
    --missing;
  }

  /// Returns whether the key, which is in a frame, must be kept when that frame is done.
  bool Wants(CacheKey key) const {
    const std::size_t at = index.Find(key);
    return at != KeyIndex::kAbsent && states[at] == State::kInFrame;
  }

  void Take(CacheKey key, SlotId slot) {
    RHIZOME_DCHECK(Wants(key));
    states[index.Find(key)] = State::kTaken;
    slots.push_back(slot);
  }

  /// Keeps the slot of a missing key that the current policy has just read. Returns whether it did.
  bool Keep(CacheKey key, SlotId slot) {
    const std::size_t at = index.Find(key);
    if (at == KeyIndex::kAbsent || states[at] != State::kMissing) return false;
    states[at] = State::kTaken;
    slots.push_back(slot);
    --missing;
    return true;
  }

  /// Assigns `slot` to the first missing key, which the caller reads into it, and returns the key.
  CacheKey TakeNext(SlotId slot) {
    RHIZOME_DCHECK(missing != 0 && slots.size() < entries.size());
    while (states[next] != State::kMissing) ++next;
    states[next] = State::kTaken;
    slots.push_back(slot);
    --missing;
    ++read;
    return entries[next].first;
  }

  const std::span<const PrefillEntry> entries;
  const KeyIndex index;
  const bool knows_reads;     // the policy lists its reads; all other keys are in a frame, now or
                              // at the switch
  std::vector<State> states;  // by entry
  std::size_t missing;        // entries in state kMissing
  std::size_t next = 0;       // no entry before it is missing
  std::vector<SlotId> slots;
  std::size_t read = 0;  // number of `slots` that were read ahead rather than taken over
};

BufferPool::BufferPool() = default;
BufferPool::BufferPool(BufferPool&&) noexcept = default;
BufferPool::~BufferPool() = default;

Result<BufferPool> BufferPool::Create(std::size_t frame_bytes, std::uint32_t frame_count,
                                      HoldLimits room) try {
  BufferPool pool;
  std::size_t pool_bytes = 0;
  pool.frame_count_ = frame_count;
  pool.slot_count_ = frame_count + std::max(room.most, room.slots);
  if (pool.slot_count_ >= kNowhere ||
      __builtin_mul_overflow(frame_bytes, std::size_t{pool.slot_count_}, &pool_bytes)) {
    return Fail(Status::OutOfMemory(fmt::format(
        "a pool of {} frames of {} bytes exceeds the address space; use a smaller cache",
        pool.slot_count_, frame_bytes)));
  }
  pool.frame_bytes_ = frame_bytes;
  if (pool_bytes > 0) {
    RHIZOME_ASSIGN_OR_RETURN(pool.memory_,
                             AlignedBuffer::Reserve(pool_bytes, frame_count * frame_bytes));
  }
  pool.table_ = std::make_unique<SlotTable>(frame_count + room.slots, pool.slot_count_);
  pool.place_.assign(frame_count, kNowhere);
  pool.is_done_.assign(frame_count, false);
  pool.policy_ = MakeNonePolicy();
  return pool;
} catch (...) {
  return Fail(StatusOfException());
}

Status BufferPool::SetPolicy(std::unique_ptr<Policy> policy) {
  if (policy == nullptr) policy = MakeNonePolicy();
  const Status status = CheckPrefill(policy->Prefill(), place_.size());
  policy_ = status.ok() ? std::move(policy) : MakeNonePolicy();
  done_.clear();
  waiting_.clear();
  is_done_.assign(place_.size(), false);
  return status;
}

std::vector<PrefillEntry> BufferPool::Prefill() {
  const std::span<const PrefillEntry> prefill = policy_->Prefill();
  const KeyIndex index(prefill);
  std::vector<SlotId> former = place_;
  std::erase(former, kNowhere);
  if (ahead_ != nullptr) former.insert(former.end(), ahead_->slots.begin(), ahead_->slots.end());
  std::vector<bool> there(prefill.size());
  std::vector<SlotId> places(place_.size(), kNowhere);
  std::vector<SlotId> kept;
  const auto keep = [&](SlotId slot) {
    const std::size_t at = index.Find(holds_[slot]);
    if (at == KeyIndex::kAbsent || there[at]) return;
    there[at] = true;
    RHIZOME_DCHECK(prefill[at].second < places.size());
    places[prefill[at].second] = slot;
    kept.push_back(slot);
  };
  if (knows_reads()) {
    // The units that free slots still hold depend on when steps were released.
    for (const SlotId slot : former) keep(slot);
  } else {
    for (SlotId slot = 0; slot < holds_.size(); ++slot) keep(slot);
  }
  std::vector<PrefillEntry> missing;
  missing.reserve(prefill.size() - kept.size());
  for (std::size_t i = 0; i < prefill.size(); ++i) {
    if (!there[i]) missing.push_back(prefill[i]);
  }
  place_ = std::move(places);
  const std::unique_ptr<Ahead> ahead = std::exchange(ahead_, nullptr);
  const std::size_t read = ahead == nullptr ? 0 : ahead->read;  // read ahead, and counted at that
                                                                // time
  counters_.prefill += prefill.size() - read;
  counters_.kept += kept.size() - read;
  table_->Rename(kept, former);
  return missing;
}

void BufferPool::Announce(const Policy& next) {
  if (!CheckPrefill(next.Prefill(), place_.size()).ok()) return;
  ahead_ = std::make_unique<Ahead>(next.Prefill(), next.PrefillReads());
  // The new policy may want other keys than the one that was announced before.
  done_.insert(done_.begin(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  for (const SlotId slot : place_) {
    if (slot != kNowhere) ahead_->Enter(holds_[slot]);
  }
}

void BufferPool::SetDone(std::span<const FrameId> frames) {
  for (const FrameId frame : frames) {
    if (is_done_[frame]) continue;
    is_done_[frame] = true;
    done_.push_back(frame);
  }
}

/// Records that `frame` now holds `key`.
void BufferPool::Enter(CacheKey key, FrameId frame) {
  is_done_[frame] = false;
  if (ahead_ != nullptr) ahead_->Enter(key);
}

/// Returns how many slots the announced policy may use while the current policy still runs.
std::size_t BufferPool::SpareSlots() const {
  return frame_count() - std::min(frame_count(), policy_->frames_needed());
}

/// Empties the frames that are done. Slots that the announced policy wants are kept for it, up to
/// its share of slots; the others are released. Each frame is checked once when it becomes done,
/// and again when the share allows to keep it.
void BufferPool::EmptyDoneFrames() {
  const std::size_t spare = SpareSlots();
  const auto empty = [&](FrameId frame) {
    place_[frame] = kNowhere;
    is_done_[frame] = false;
  };
  std::vector<SlotId> dropped;
  for (const FrameId frame : done_) {
    if (!is_done_[frame]) continue;
    const SlotId slot = place_[frame];
    RHIZOME_DCHECK(slot != kNowhere);
    if (ahead_->Wants(holds_[slot])) {
      waiting_.push_back(frame);
      continue;
    }
    dropped.push_back(slot);
    empty(frame);
  }
  done_.clear();
  for (; !waiting_.empty() && ahead_->slots.size() < spare; waiting_.pop_front()) {
    const FrameId frame = waiting_.front();
    if (!is_done_[frame]) continue;
    ahead_->Take(holds_[place_[frame]], place_[frame]);
    empty(frame);
  }
  table_->Rename({}, dropped);
}

std::vector<std::pair<CacheKey, SlotId>> BufferPool::TakeAhead(std::size_t least,
                                                               std::size_t most) {
  std::vector<std::pair<CacheKey, SlotId>> taken;
  if (ahead_ == nullptr) return taken;
  EmptyDoneFrames();
  const std::size_t spare = SpareSlots();
  const std::size_t room = spare - std::min(spare, ahead_->slots.size());
  const std::size_t count = std::min({most, ahead_->missing, room, table_->room()});
  if (count < std::min(least, ahead_->missing)) return taken;
  std::vector<SlotId> slots(count);
  table_->Take(slots);
  for (const SlotId slot : slots) {
    const CacheKey key = ahead_->TakeNext(slot);
    SetHolds(slot, key);
    taken.emplace_back(key, slot);
  }
  RHIZOME_DCHECK(ahead_->slots.size() <= spare && std::is_sorted(taken.begin(), taken.end()));
  counters_.prefill += count;
  return taken;
}

Result<std::size_t> BufferPool::WaitForSpace(std::size_t least, std::size_t wanted) {
  return table_->WaitForSpace(least, wanted);
}

Status BufferPool::Plan(std::span<const CacheKey> keys, StepPlan& plan) {
  RHIZOME_RETURN_IF_ERROR(policy_->Step(keys, plan));
  if (!CanCarryOut(plan, keys.size())) return NotOfThisPool(place_.size());
  RHIZOME_DCHECK(NamesEachRequestOnce(plan, keys.size()));
  counters_.requests += keys.size();
  counters_.hits += plan.hits.size();
  counters_.misses += plan.misses.size();
  return Status::Ok();
}

bool BufferPool::CanCarryOut(const StepPlan& plan, std::size_t keys) const {
  const auto has = [&](FrameId frame) { return frame < place_.size(); };
  const auto can_place = [&](const StepPlan::Place& place) {
    return place.request < keys && has(place.frame);
  };
  const auto is_there = [&](const StepPlan::Place& hit) {
    return can_place(hit) && place_[hit.frame] != kNowhere;
  };
  return plan.hits.size() + plan.misses.size() == keys &&
         std::all_of(plan.hits.begin(), plan.hits.end(), is_there) &&
         std::all_of(plan.misses.begin(), plan.misses.end(),
                     [&](std::uint32_t miss) { return miss < keys; }) &&
         std::all_of(plan.inserts.begin(), plan.inserts.end(), can_place) &&
         std::all_of(plan.done.begin(), plan.done.end(), has);
}

std::span<std::byte> BufferPool::frame(FrameId frame) const {
  RHIZOME_CHECK(frame < place_.size() && place_[frame] != kNowhere);
  return slot(place_[frame]);
}

std::span<std::byte> BufferPool::Fill(CacheKey key, FrameId frame) {
  RHIZOME_CHECK(frame < place_.size());
  place_[frame] = table_->Own(place_[frame]);
  SetHolds(place_[frame], key);
  Enter(key, frame);
  return slot(place_[frame]);
}

// Carries out a plan: (1) waits until there is a slot for each miss; (2) collects the slots of the
// hits; (3) takes slots for the misses; (4) points the frames of the inserts to the slots of this
// step, and drops their former slots; (5) keeps misses that the announced policy wants; (6) adds
// the step's references and registers it as a holder.
Status BufferPool::Hold(std::span<const CacheKey> keys, const StepPlan& plan,
                        std::vector<SlotId>& slots) try {
  // Done frames count as space for the announced policy, even if there is no time to read ahead. If
  // they were not emptied, the misses that are kept for that policy would need slots in addition to
  // them.
  if (ahead_ != nullptr) EmptyDoneFrames();
  if (!plan.misses.empty()) {
    const std::size_t misses = plan.misses.size();
    const Result<std::size_t> room = table_->WaitForSpace(misses, misses);
    if (!room) return room.error();
  }
  slots.resize(keys.size());
  std::vector<SlotId> named;
  named.reserve(keys.size());
  for (const StepPlan::Place& hit : plan.hits) {
    slots[hit.request] = place_[hit.frame];
    RHIZOME_DCHECK(
        place_[hit.frame] != kNowhere &&
        (holds_[place_[hit.frame]] == keys[hit.request] || holds_[place_[hit.frame]] == kNothing));
    named.push_back(place_[hit.frame]);
  }
  std::vector<SlotId> taken(plan.misses.size());
  table_->Take(taken);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    slots[plan.misses[i]] = taken[i];
    SetHolds(taken[i], keys[plan.misses[i]]);
  }
  std::vector<SlotId> dropped;
  dropped.reserve(plan.inserts.size());
  for (const StepPlan::Place& insert : plan.inserts) {
    named.push_back(slots[insert.request]);
    const SlotId former = std::exchange(place_[insert.frame], slots[insert.request]);
    Enter(keys[insert.request], insert.frame);
    if (former != kNowhere) dropped.push_back(former);
  }
  if (ahead_ != nullptr) KeepMisses(plan.misses, slots, named);
  table_->Rename(named, dropped);
  table_->Hold();
  SetDone(plan.done);
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

/// Keeps misses that no frame keeps but the announced policy wants, by adding a reference to their
/// slots.
void BufferPool::KeepMisses(std::span<const std::uint32_t> misses, std::span<const SlotId> slots,
                            std::vector<SlotId>& named) {
  if (ahead_->knows_reads) return;
  const std::size_t spare = SpareSlots();
  for (const std::uint32_t miss : misses) {
    if (ahead_->slots.size() >= spare) return;
    if (ahead_->Keep(holds_[slots[miss]], slots[miss])) named.push_back(slots[miss]);
  }
}

void BufferPool::SetHolds(SlotId slot, CacheKey key) {
  if (slot >= holds_.size()) holds_.resize(slot + 1, kNothing);
  holds_[slot] = key;
}

void BufferPool::Discard() {
  if (!table_->WaitUntilReleased()) return;
  memory_.GiveBack();
  Forget();
}

void BufferPool::Forget() {
  std::fill(holds_.begin(), holds_.end(), kNothing);
  if (ahead_ != nullptr) ahead_->read = 0;
}

}  // namespace internal
}  // namespace rhizome
