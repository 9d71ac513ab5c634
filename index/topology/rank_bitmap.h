#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rhizome {
inline namespace internal {

/// A set of numbers below `size` with rank in O(1): one bit for each number, and one count for each
/// 64 numbers. Call Set for all members, then Seal once; Rank is valid only after Seal.
class RankBitmap {
 public:
  RankBitmap() = default;
  explicit RankBitmap(std::uint64_t size) : words_((size + 63) / 64, 0) {}

  /// Creates a sealed set from its words: bit i % 64 of word i / 64 is set for each member i.
  explicit RankBitmap(std::span<const std::uint64_t> words) : words_(words.begin(), words.end()) {
    Seal();
  }

  void Set(std::uint64_t i) { words_[i / 64] |= Bit(i); }

  /// Thread-safe form of Set.
  void SetShared(std::uint64_t i) {
    const std::atomic_ref<std::uint64_t> word(words_[i / 64]);
    if ((word.load(std::memory_order_relaxed) & Bit(i)) == 0)
      word.fetch_or(Bit(i), std::memory_order_relaxed);
  }
  void Clear(std::uint64_t i) { words_[i / 64] &= ~Bit(i); }
  bool Test(std::uint64_t i) const { return (words_[i / 64] & Bit(i)) != 0; }

  void Seal() {
    before_.resize(words_.size());
    std::uint64_t before = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      before_[w] = before;
      before += static_cast<std::uint64_t>(std::popcount(words_[w]));
    }
  }

  /// Returns the number of members below `i`.
  std::uint64_t Rank(std::uint64_t i) const {
    return before_[i / 64] +
           static_cast<std::uint64_t>(std::popcount(words_[i / 64] & (Bit(i) - 1)));
  }

  /// Appends the first `most` members that are at least `begin` to `members`. Returns a number up
  /// to which it has appended all.
  std::uint64_t AppendFrom(std::uint64_t begin, std::size_t most,
                           std::vector<std::uint64_t>& members) const {
    for (std::size_t w = begin / 64; w < words_.size(); ++w) {
      const std::uint64_t skipped = w == begin / 64 ? Bit(begin) - 1 : 0;
      for (std::uint64_t rest = words_[w] & ~skipped; rest != 0; rest &= rest - 1) {
        const std::uint64_t member =
            std::uint64_t{w} * 64 + static_cast<std::uint64_t>(std::countr_zero(rest));
        if (most-- == 0) return member;
        members.push_back(member);
      }
    }
    return words_.size() * 64;
  }

  /// Calls visit(member) in ascending order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t rest = words_[w]; rest != 0; rest &= rest - 1)
        visit(std::uint64_t{w} * 64 + static_cast<std::uint64_t>(std::countr_zero(rest)));
    }
  }

 private:
  static std::uint64_t Bit(std::uint64_t i) { return std::uint64_t{1} << (i % 64); }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> before_;
};

}  // namespace internal
}  // namespace rhizome
