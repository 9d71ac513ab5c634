#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/policy.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// Finds keys in a prefill list that is sorted by key. The key range is divided into about as many
/// equal parts as there are entries, and a table stores where each part begins, so that a lookup
/// touches few cache lines. The entries are not owned.
class KeyIndex {
 public:
  static constexpr std::size_t kAbsent = std::numeric_limits<std::size_t>::max();

  KeyIndex() = default;
  explicit KeyIndex(std::span<const PrefillEntry> entries) : entries_(entries) {
    if (entries.empty()) return;
    // Entries are ascending and distinct.
    RHIZOME_DCHECK(entries.front().first >= 0 &&
                   std::adjacent_find(entries.begin(), entries.end(),
                                      [](const PrefillEntry& a, const PrefillEntry& b) {
                                        return a.first >= b.first;
                                      }) == entries.end());
    const auto last = static_cast<std::uint64_t>(entries.back().first);
    while ((last >> shift_) > entries.size()) ++shift_;
    starts_.resize((last >> shift_) + 2, 0);
    for (const PrefillEntry& entry : entries) ++starts_[RangeOf(entry.first) + 1];
    for (std::size_t r = 1; r < starts_.size(); ++r) starts_[r] += starts_[r - 1];
  }

  /// Returns the position of the key's entry, or kAbsent.
  std::size_t Find(CacheKey key) const {
    if (entries_.empty() || key < 0 || key > entries_.back().first) return kAbsent;
    const std::size_t range = RangeOf(key);
    const auto begin = entries_.begin() + starts_[range];
    const auto end = entries_.begin() + starts_[range + 1];
    const auto found = std::lower_bound(
        begin, end, key, [](const PrefillEntry& entry, CacheKey k) { return entry.first < k; });
    if (found == end || found->first != key) return kAbsent;
    return static_cast<std::size_t>(found - entries_.begin());
  }

 private:
  std::size_t RangeOf(CacheKey key) const { return static_cast<std::uint64_t>(key) >> shift_; }

  std::span<const PrefillEntry> entries_;
  unsigned shift_ = 0;
  std::vector<std::uint32_t> starts_;  // by part of the range, plus one past the last
};

}  // namespace internal
}  // namespace rhizome
