#include "rhizome/cache/spill_policy.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "rhizome/cache/spill_count.h"
#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {
namespace {

using ChunkId = std::pair<ArrayId, std::uint32_t>;

class StreamAll : public SpillPolicy {
 public:
  explicit StreamAll(ChosenPasses passes) : passes_(std::move(passes)) {}
  void Begin(std::size_t pass, std::vector<LeavingChunk>&) override { pass_ = pass; }
  Verdict Read(ArrayId, std::uint32_t, std::vector<LeavingChunk>&) override { return {}; }
  Verdict Made(ArrayId array, std::uint32_t, std::vector<LeavingChunk>&) override {
    return {.hit = false, .keep = false, .write = passes_.sequence->NeededAfter(array, pass_)};
  }
  void End(std::vector<LeavingChunk>&) override {}

 private:
  ChosenPasses passes_;
  std::size_t pass_ = 0;
};

/// Keeps the first chunks of arrays, as many as are decided for each pass.
class PrefixSpill : public SpillPolicy {
 public:
  PrefixSpill(ChosenPasses passes, std::vector<std::vector<std::uint32_t>> resident)
      : passes_(std::move(passes)), resident_(std::move(resident)) {}

  void Begin(std::size_t pass, std::vector<LeavingChunk>& leaves) override {
    pass_ = pass;
    for (auto held = held_.begin(); held != held_.end();) {
      const auto [id, dirty] = *held;
      if (id.second < resident_[pass][id.first]) {
        ++held;
      } else {
        leaves.push_back({.array = id.first, .chunk = id.second, .write = dirty});
        held = held_.erase(held);
      }
    }
  }

  Verdict Read(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>&) override {
    const auto held = held_.find({array, chunk});
    const bool hit = held != held_.end();
    if (passes_.sequence->EndsInOrder(array, pass_, passes_.choice(pass_))) {
      if (hit) held_.erase(held);
      return {.hit = hit, .keep = false, .write = false};
    }
    const bool keep = hit || chunk < resident_[pass_][array];
    if (keep && !hit) held_.emplace(ChunkId(array, chunk), false);
    return {.hit = hit, .keep = keep, .write = false};
  }

  Verdict Made(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>&) override {
    if (!passes_.sequence->NeededAfter(array, pass_)) return {};
    const bool keep = chunk < resident_[pass_][array];
    if (keep) held_.emplace(ChunkId(array, chunk), true);
    return {.hit = false, .keep = keep, .write = !keep};
  }

  void End(std::vector<LeavingChunk>& leaves) override {
    for (auto held = held_.begin(); held != held_.end();) {
      const ChunkId id = held->first;
      if (passes_.sequence->NeededAfter(id.first, pass_)) {
        ++held;
      } else {
        leaves.push_back({.array = id.first, .chunk = id.second, .write = false});
        held = held_.erase(held);
      }
    }
  }

 private:
  ChosenPasses passes_;
  std::vector<std::vector<std::uint32_t>> resident_;
  std::map<ChunkId, bool> held_;  // true: dirty
  std::size_t pass_ = 0;
};

/// Keeps chunks by rank: the lowest leaves first.
class RankedSpill : public SpillPolicy {
 public:
  explicit RankedSpill(ChosenPasses passes) : passes_(std::move(passes)) {}

  void Begin(std::size_t pass, std::vector<LeavingChunk>& leaves) override {
    pass_ = pass;
    while (held_bytes_ > passes_.room(pass_)) Evict(leaves);
  }

  Verdict Read(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) override {
    const ChunkId id(array, chunk);
    const auto held = held_.find(id);
    const bool hit = held != held_.end();
    bool dirty = false;
    if (hit) {
      dirty = held->second.dirty;
      Remove(held);
    }
    const Rank rank = NextRank(dirty);
    const bool keep = rank.stays && Insert(id, rank.value, dirty, leaves);
    if (dirty && rank.stays && !keep) {
      leaves.push_back({.array = array, .chunk = chunk, .write = Needed(array)});
    }
    return {.hit = hit, .keep = keep, .write = false};
  }

  Verdict Made(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) override {
    const Rank rank = NextRank(/*dirty=*/true);
    if (!rank.stays || !Needed(array)) return {};
    const bool keep = Insert({array, chunk}, rank.value, /*dirty=*/true, leaves);
    return {.hit = false, .keep = keep, .write = !keep};
  }

  void End(std::vector<LeavingChunk>& leaves) override {
    for (auto held = held_.begin(); held != held_.end();) {
      const auto next = std::next(held);
      if (IsDead(held->first.first)) {
        leaves.push_back({.array = held->first.first, .chunk = held->first.second, .write = false});
        Remove(held);
      }
      held = next;
    }
  }

 protected:
  /// The rank of the chunk that is accessed now, and whether it may stay.
  struct Rank {
    std::uint64_t value = 0;
    bool stays = true;
  };
  virtual Rank NextRank(bool dirty) = 0;

  /// Is a chunk of the array, if it is nowhere else, to be written when it leaves?
  virtual bool Needed(ArrayId array) const = 0;

  /// Does nothing of the array stay behind the pass that ends?
  virtual bool IsDead(ArrayId array) const = 0;

  const CountedSequence& sequence() const { return *passes_.sequence; }
  const ChosenPasses& passes() const { return passes_; }
  std::size_t pass() const { return pass_; }

 private:
  struct Held {
    std::uint64_t rank = 0;
    bool dirty = false;
  };
  using HeldChunks = std::map<ChunkId, Held>;

  std::uint64_t BytesOf(const ChunkId& id) const {
    return sequence().arrays[id.first].BytesOfChunk(id.second);
  }

  void Remove(HeldChunks::iterator held) {
    held_bytes_ -= BytesOf(held->first);
    ranks_.erase({held->second.rank, held->first});
    held_.erase(held);
  }

  void Evict(std::vector<LeavingChunk>& leaves) {
    const auto held = held_.find(ranks_.begin()->second);
    const ArrayId array = held->first.first;
    leaves.push_back({.array = array,
                      .chunk = held->first.second,
                      .write = held->second.dirty && Needed(array) &&
                               !RHIZOME_MUTANT("chunks leave memory unwritten")});
    Remove(held);
  }

  /// Returns whether the chunk stays.
  bool Insert(const ChunkId& id, std::uint64_t rank, bool dirty,
              std::vector<LeavingChunk>& leaves) {
    const std::uint64_t bytes = BytesOf(id);
    while (held_bytes_ + bytes > passes_.room(pass_)) {
      if (RHIZOME_MUTANT("memory has room for one more chunk") &&
          held_bytes_ <= passes_.room(pass_)) {
        break;
      }
      if (ranks_.empty() || rank < ranks_.begin()->first) return false;
      Evict(leaves);
    }
    held_.emplace(id, Held{.rank = rank, .dirty = dirty});
    ranks_.emplace(rank, id);
    held_bytes_ += bytes;
    return true;
  }

  ChosenPasses passes_;
  HeldChunks held_;
  std::set<std::pair<std::uint64_t, ChunkId>> ranks_;
  std::uint64_t held_bytes_ = 0;
  std::size_t pass_ = 0;
};

class LruSpill : public RankedSpill {
 public:
  LruSpill(ChosenPasses passes, bool live) : RankedSpill(std::move(passes)), live_(live) {}

 protected:
  Rank NextRank(bool) override { return {.value = ++clock_, .stays = true}; }
  bool Needed(ArrayId array) const override {
    return !live_ || sequence().last_read[array] >= static_cast<std::int32_t>(pass());
  }
  bool IsDead(ArrayId array) const override {
    return live_ && !sequence().NeededAfter(array, pass());
  }

 private:
  bool live_;
  std::uint64_t clock_ = 0;
};

/// The rank of a chunk falls with the time of its next use; one without is not kept.
class BeladySpill : public RankedSpill {
 public:
  BeladySpill(ChosenPasses chosen, std::uint32_t nearness)
      : RankedSpill(std::move(chosen)), nearness_(nearness) {
    std::vector<ChunkAccess> all;
    for (std::size_t p = 0; p < sequence().passes.size(); ++p) {
      const std::vector<ChunkAccess> accesses = AccessesOf(sequence(), p, passes().choice(p));
      all.insert(all.end(), accesses.begin(), accesses.end());
    }
    next_.resize(all.size());
    std::map<ChunkId, std::size_t> known;
    for (std::size_t i = all.size(); i-- > 0;) {
      const auto [use, is_last] = known.try_emplace(ChunkId(all[i].array, all[i].chunk), i);
      next_[i] = is_last ? kNever : use->second;
      use->second = i;
    }
  }

 protected:
  Rank NextRank(bool dirty) override {
    const std::size_t now = at_++;
    if (next_[now] == kNever) return {.value = 0, .stays = false};
    const std::size_t away = next_[now] - now;
    const std::size_t use = now + (dirty ? (away + nearness_ - 1) / nearness_ : away);
    const bool nearest = RHIZOME_MUTANT("what is needed next leaves first");
    return {.value = nearest ? use : next_.size() - use, .stays = true};
  }
  bool Needed(ArrayId) const override { return true; }
  bool IsDead(ArrayId) const override { return false; }

 private:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  const std::uint32_t nearness_;
  std::vector<std::size_t> next_;  // by access: the next one to the same chunk
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<SpillPolicy> MakeStreamAll(const ChosenPasses& passes) {
  return std::make_unique<StreamAll>(passes);
}

std::unique_ptr<SpillPolicy> MakeLruSpill(const ChosenPasses& passes, bool live) {
  return std::make_unique<LruSpill>(passes, live);
}

std::unique_ptr<SpillPolicy> MakeBeladySpill(const ChosenPasses& passes,
                                             std::uint32_t dirty_nearness) {
  return std::make_unique<BeladySpill>(passes, dirty_nearness);
}

std::unique_ptr<SpillPolicy> MakePrefixSpill(const ChosenPasses& passes,
                                             std::vector<std::vector<std::uint32_t>> resident) {
  return std::make_unique<PrefixSpill>(passes, std::move(resident));
}

}  // namespace rhizome::inline internal
