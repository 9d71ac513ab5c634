#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// A set of numbers in [0, size) with fast access to its maximum: a tree of 64-ary bitsets, where
/// each bit indicates that the word below it is nonzero. Every operation takes log64(size) steps.
class StepSet {
 public:
  explicit StepSet(std::size_t size) {
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }

  bool empty() const { return levels_.back().empty() || levels_.back()[0] == 0; }

  void Insert(std::size_t member) {
    RHIZOME_DCHECK(member / 64 < levels_.front().size());
    for (std::vector<std::uint64_t>& words : levels_) {
      std::uint64_t& word = words[member / 64];
      const bool was_empty = word == 0;
      word |= std::uint64_t{1} << (member % 64);
      if (!was_empty) return;
      member /= 64;
    }
  }

  void Erase(std::size_t member) {
    RHIZOME_DCHECK(member / 64 < levels_.front().size());
    for (std::vector<std::uint64_t>& words : levels_) {
      std::uint64_t& word = words[member / 64];
      word &= ~(std::uint64_t{1} << (member % 64));
      if (word != 0) return;
      member /= 64;
    }
  }

  /// Returns the maximum; the set must not be empty.
  std::size_t Max() const {
    RHIZOME_DCHECK(!empty());
    std::size_t member = 0;
    for (std::size_t level = levels_.size(); level > 0; --level) {
      const std::uint64_t word = levels_[level - 1][member];
      member = member * 64 + static_cast<std::size_t>(std::bit_width(word)) - 1;
    }
    return member;
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // leaves first; the last has one word
};

}  // namespace internal
}  // namespace rhizome
