#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "cache/policy/offline_schedule.h"
#include "cache/policy/step_set.h"

namespace rhizome {
inline namespace internal {

// Containers for the keys in the pool while a schedule is built (offline_schedule.cc): keys that
// the trace requests again, and keys that it does not.

/// The minimum value of a key, and the class where it was found.
struct LeastWorth {
  float worth = std::numeric_limits<float>::infinity();
  std::size_t cost_class = 0;
  std::size_t step = 0;  ///< step of its next use, if it has one
};

/// Keys that are requested again, bucketed by the step of their next use and by the cost class of
/// that read. A key is identified by its next access, so the keys needed in a step occupy that
/// step's slice of `members_`, ordered by class, and no memory is allocated while the builder runs.
class NextUseBuckets {
 public:
  NextUseBuckets(const Trace& trace, const AccessCosts& costs)
      : costs_(costs),
        classes_(costs.cost.size()),
        members_(trace.keys.size()),
        starts_(trace.steps() * classes_),
        counts_(trace.steps() * classes_, 0),
        occupied_(classes_, StepSet(trace.steps())) {
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      std::vector<AccessId> sizes(classes_, 0);
      for (std::uint64_t a = trace.offsets[s]; a < trace.offsets[s + 1]; ++a)
        ++sizes[costs_.ClassOf(a)];
      auto start = static_cast<AccessId>(trace.offsets[s]);
      for (std::size_t c = 0; c < classes_; ++c)
        starts_[s * classes_ + c] = std::exchange(start, start + sizes[c]);
    }
  }

  void Add(NextUse use) {
    const std::size_t c = costs_.ClassOf(use.access);
    const std::size_t bucket = use.step * classes_ + c;
    if (counts_[bucket] == 0) occupied_[c].Insert(use.step);
    RHIZOME_DCHECK(starts_[bucket] + counts_[bucket] < members_.size());
    members_[starts_[bucket] + counts_[bucket]++] = use.access;
    ++size_;
  }

  /// Returns the minimum value over all keys. Within a class the keys that are needed last have the
  /// least value, so only one bucket of each class is compared. There must be a key.
  LeastWorth Least(std::size_t now) const {
    LeastWorth least;
    for (std::size_t c = 0; c < classes_; ++c) {
      if (occupied_[c].empty()) continue;
      const std::size_t step = occupied_[c].Max();
      RHIZOME_DCHECK(step > now);
      const float worth = costs_.cost[c] / static_cast<float>(step - now);
      if (worth < least.worth) least = {worth, c, step};
    }
    return least;
  }

  /// Removes up to `most` keys of the bucket that Least returned, and calls visit(access) for each.
  /// Returns the number removed.
  template <typename Visit>
  std::uint64_t Remove(const LeastWorth& least, std::uint64_t most, const Visit& visit) {
    const std::size_t bucket = least.step * classes_ + least.cost_class;
    std::uint32_t& count = counts_[bucket];
    RHIZOME_DCHECK(count != 0);
    const auto gone = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, count));
    for (std::uint32_t i = 0; i < gone; ++i) visit(members_[starts_[bucket] + --count]);
    if (count == 0) occupied_[least.cost_class].Erase(least.step);
    size_ -= gone;
    return gone;
  }

  std::uint64_t size() const { return size_; }

  /// Removes all keys that are needed in `step`.
  void Drop(std::size_t step) {
    for (std::size_t c = 0; c < classes_; ++c) {
      const std::size_t bucket = step * classes_ + c;
      if (counts_[bucket] == 0) continue;
      size_ -= std::exchange(counts_[bucket], 0);
      occupied_[c].Erase(step);
    }
  }

 private:
  const AccessCosts& costs_;
  const std::size_t classes_;
  std::vector<AccessId> members_;
  std::vector<AccessId> starts_;       // by step and class; index into members_
  std::vector<std::uint32_t> counts_;  // by step and class
  std::vector<StepSet> occupied_;      // by class
  std::uint64_t size_ = 0;
};

/// Keys that are not requested again but have a value by the prior. A key is identified by its last
/// access or, if the pool held it at the start and the trace does not request it, by its position
/// among the held keys. Among keys of equal chance, the least recently used is removed first.
class IdleKeys {
 public:
  struct Key {
    float chance = 0;
    std::uint32_t id = 0;
    bool is_held = false;  ///< `id` is a position among the held keys
  };

  explicit IdleKeys(const AccessCosts& costs) : costs_(costs), classes_(costs.cost.size()) {}

  void AddHeld(float chance, std::uint32_t position, std::size_t cost_class) {
    classes_[cost_class].held.emplace_back(chance, position);
    ++size_;
  }

  /// Must be called after all held keys have been added.
  void SortHeld() {
    for (Class& one : classes_) std::sort(one.held.begin(), one.held.end(), std::greater<>());
  }

  void Add(float chance, AccessId last, std::size_t cost_class) {
    std::vector<Entry>& heap = classes_[cost_class].heap;
    heap.emplace_back(chance, last);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
    ++size_;
  }

  /// Returns the minimum value over all classes if the trace has `steps_left` more steps: a key is
  /// expected 1 / chance steps after them. There must be a key.
  LeastWorth Least(std::size_t steps_left) const {
    LeastWorth least;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const Class& one = classes_[c];
      if (one.held.empty() && one.heap.empty()) continue;
      const float chance = TakesHeld(one) ? one.held.back().first : one.heap.front().first;
      const float worth = costs_.get().cost[c] / (static_cast<float>(steps_left) + 1 / chance);
      if (worth < least.worth) least = {worth, c, 0};
    }
    return least;
  }

  /// Removes and returns the least likely key of a class.
  Key Remove(std::size_t cost_class) {
    Class& one = classes_[cost_class];
    const bool held = TakesHeld(one);
    if (!held) std::pop_heap(one.heap.begin(), one.heap.end(), std::greater<>());
    std::vector<Entry>& from = held ? one.held : one.heap;
    const Entry entry = from.back();
    from.pop_back();
    --size_;
    return {entry.first, entry.second, held};
  }

  std::uint64_t size() const { return size_; }

  /// Releases the memory.
  void Clear() { *this = IdleKeys(costs_); }

 private:
  using Entry = std::pair<float, std::uint32_t>;  // chance, id
  struct Class {
    std::vector<Entry> held;  // least likely last
    std::vector<Entry> heap;  // least likely first
  };

  static bool TakesHeld(const Class& one) {
    return !one.held.empty() &&
           (one.heap.empty() || one.held.back().first <= one.heap.front().first);
  }

  std::reference_wrapper<const AccessCosts> costs_;
  std::vector<Class> classes_;
  std::uint64_t size_ = 0;
};

}  // namespace internal
}  // namespace rhizome
