#include "cache/full_graph/spill_policy.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "cache/full_graph/chunk_table.h"
#include "cache/full_graph/spill_count.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

// Policies: StreamAll keeps nothing; PrefixSpill keeps planned prefixes of arrays; LruSpill and
// BeladySpill keep chunks by rank (RankedSpill). On each access a RankedSpill (1) looks up the
// chunk; (2) ranks it by its last or next use; (3) inserts it if its rank suffices, evicting the
// lowest ranks.

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

/// Keeps the first chunks of arrays, in the numbers planned for each pass.
class PrefixSpill : public SpillPolicy {
 public:
  PrefixSpill(ChosenPasses passes, std::vector<std::vector<std::uint32_t>> resident)
      : passes_(std::move(passes)),
        resident_(std::move(resident)),
        table_(passes_.sequence->arrays),
        held_(table_.size(), State::kNone) {}

  void Begin(std::size_t pass, std::vector<LeavingChunk>& leaves) override {
    pass_ = pass;
    for (ArrayId array = 0; array < table_.arrays(); ++array) {
      for (std::uint32_t chunk = resident_[pass][array]; chunk < table_.ChunksOf(array); ++chunk)
        Leave(array, chunk, At(array, chunk) == State::kDirty, leaves);
    }
  }

  Verdict Read(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>&) override {
    State& state = At(array, chunk);
    const bool hit = state != State::kNone;
    if (passes_.sequence->EndsInOrder(array, pass_, passes_.choice(pass_))) {
      state = State::kNone;
      return {.hit = hit, .keep = false, .write = false};
    }
    const bool keep = hit || chunk < resident_[pass_][array];
    if (keep && !hit) state = State::kClean;
    return {.hit = hit, .keep = keep, .write = false};
  }

  Verdict Made(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>&) override {
    if (!passes_.sequence->NeededAfter(array, pass_)) return {};
    const bool keep = chunk < resident_[pass_][array];
    if (keep) At(array, chunk) = State::kDirty;
    return {.hit = false, .keep = keep, .write = !keep};
  }

  void End(std::vector<LeavingChunk>& leaves) override {
    for (ArrayId array = 0; array < table_.arrays(); ++array) {
      if (passes_.sequence->NeededAfter(array, pass_)) continue;
      for (std::uint32_t chunk = 0; chunk < table_.ChunksOf(array); ++chunk)
        Leave(array, chunk, /*write=*/false, leaves);
    }
  }

 private:
  enum class State : std::uint8_t { kNone, kClean, kDirty };

  State& At(ArrayId array, std::uint32_t chunk) { return held_[table_.NumberOf(array, chunk)]; }

  void Leave(ArrayId array, std::uint32_t chunk, bool write, std::vector<LeavingChunk>& leaves) {
    State& state = At(array, chunk);
    if (state == State::kNone) return;
    leaves.push_back({.array = array, .chunk = chunk, .write = write});
    state = State::kNone;
  }

  ChosenPasses passes_;
  std::vector<std::vector<std::uint32_t>> resident_;
  const ChunkTable table_;
  std::vector<State> held_;  // by chunk number
  std::size_t pass_ = 0;
};

/// Keeps chunks by rank: the lowest rank is evicted first, ties by chunk order.
class RankedSpill : public SpillPolicy {
 public:
  explicit RankedSpill(ChosenPasses passes)
      : passes_(std::move(passes)), table_(passes_.sequence->arrays), held_(table_.size()) {}

  void Begin(std::size_t pass, std::vector<LeavingChunk>& leaves) override {
    pass_ = pass;
    while (held_bytes_ > passes_.room(pass_)) Evict(leaves);
  }

  Verdict Read(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) override {
    const Held& held = held_[table_.NumberOf(array, chunk)];
    const bool hit = held.there;
    const bool dirty = hit && held.dirty;
    if (hit) Remove({array, chunk});
    const Rank rank = NextRank(dirty);
    const bool keep = rank.stays && Insert({array, chunk}, rank.value, dirty, leaves);
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
    for (ArrayId array = 0; array < table_.arrays(); ++array) {
      if (!IsDead(array)) continue;
      for (std::uint32_t chunk = 0; chunk < table_.ChunksOf(array); ++chunk) {
        if (!held_[table_.NumberOf(array, chunk)].there) continue;
        leaves.push_back({.array = array, .chunk = chunk, .write = false});
        Remove({array, chunk});
      }
    }
  }

 protected:
  /// Rank of the chunk that is accessed now, and whether it may be kept.
  struct Rank {
    std::uint64_t value = 0;
    bool stays = true;
  };
  virtual Rank NextRank(bool dirty) = 0;

  /// Returns whether a dirty chunk of the array must be written when it leaves.
  virtual bool Needed(ArrayId array) const = 0;

  /// Returns whether no chunk of the array remains after the pass that ends.
  virtual bool IsDead(ArrayId array) const = 0;

  const CountedSequence& sequence() const { return *passes_.sequence; }
  const ChosenPasses& passes() const { return passes_; }
  const ChunkTable& table() const { return table_; }
  std::size_t pass() const { return pass_; }

 private:
  struct Held {
    std::uint32_t times = 0;  // number of times it was kept
    bool there = false;
    bool dirty = false;
  };

  /// A chunk that was kept with a rank. The entry is stale if the chunk has left or was kept again.
  struct Ranked {
    std::uint64_t rank = 0;
    ChunkId id;
    std::uint32_t times = 0;
    bool operator>(const Ranked& other) const {
      return std::pair(rank, id) > std::pair(other.rank, other.id);
    }
  };

  void Remove(const ChunkId& id) {
    held_[table_.NumberOf(id.first, id.second)].there = false;
    held_bytes_ -= table_.BytesOf(id.first, id.second);
    --held_count_;
  }

  bool HasLeft(const Ranked& ranked) const {
    const Held& held = held_[table_.NumberOf(ranked.id.first, ranked.id.second)];
    return !held.there || held.times != ranked.times;
  }

  /// Returns the chunk that is evicted next, or null if no chunk is in memory.
  const Ranked* Lowest() {
    while (!ranks_.empty() && HasLeft(ranks_.front())) {
      std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
      ranks_.pop_back();
    }
    return ranks_.empty() ? nullptr : &ranks_.front();
  }

  void Evict(std::vector<LeavingChunk>& leaves) {
    const auto [array, chunk] = Lowest()->id;
    leaves.push_back({.array = array,
                      .chunk = chunk,
                      .write = held_[table_.NumberOf(array, chunk)].dirty && Needed(array) &&
                               !RHIZOME_MUTANT("chunks leave memory unwritten")});
    Remove({array, chunk});
  }

  /// Returns whether the chunk is kept.
  bool Insert(const ChunkId& id, std::uint64_t rank, bool dirty,
              std::vector<LeavingChunk>& leaves) {
    const std::uint64_t bytes = table_.BytesOf(id.first, id.second);
    while (held_bytes_ + bytes > passes_.room(pass_)) {
      if (RHIZOME_MUTANT("memory holds one more chunk") && held_bytes_ <= passes_.room(pass_)) {
        break;
      }
      const Ranked* const lowest = Lowest();
      if (lowest == nullptr || rank < lowest->rank) return false;
      Evict(leaves);
    }
    Held& held = held_[table_.NumberOf(id.first, id.second)];
    held = {.times = held.times + 1, .there = true, .dirty = dirty};
    held_bytes_ += bytes;
    ++held_count_;
    if (ranks_.size() > 2 * held_count_ + kMaxLeft) Forget();
    ranks_.push_back({.rank = rank, .id = id, .times = held.times});
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
    return true;
  }

  /// Removes stale entries.
  void Forget() {
    std::erase_if(ranks_, [&](const Ranked& ranked) { return HasLeft(ranked); });
    std::make_heap(ranks_.begin(), ranks_.end(), std::greater<>());
  }

  static constexpr std::size_t kMaxLeft = 1024;

  ChosenPasses passes_;
  const ChunkTable table_;
  std::vector<Held> held_;     // by chunk number
  std::vector<Ranked> ranks_;  // a heap, lowest first
  std::size_t held_count_ = 0;
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

/// The rank of a chunk falls with the time to its next use. A chunk without a next use is not kept.
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
    std::vector<std::size_t> known(table().size(), kNever);
    for (std::size_t i = all.size(); i-- > 0;) {
      std::size_t& use = known[table().NumberOf(all[i].array, all[i].chunk)];
      next_[i] = use;
      use = i;
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
  std::vector<std::size_t> next_;  // by access: next access to the same chunk
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

}  // namespace internal
}  // namespace rhizome
