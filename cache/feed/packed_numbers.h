#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {

/// Packs lists of numbers into few bits, for scratch files that one machine writes and reads once.
/// A list has one, two or four classes, each with a width in bits. Every number belongs to the
/// narrowest class that can hold it; a tag of 0, 1 or 2 bits, in a separate array, names the class.
/// The widths are chosen to minimise the size of the list. A class may have width 0: its numbers,
/// all zero, cost only their tags. Every number takes at least one bit, so the size of the input
/// bounds the count.
///
/// Layout: a head of 8 bytes (log2 of the number of classes, the four widths, three zeros); the
/// tags, in whole 8-byte words; the numbers without gaps, in whole bytes.
inline constexpr std::size_t kPackedClasses = 4;

/// Bytes that must be readable after a list, because numbers are loaded in whole words.
inline constexpr std::size_t kPackedSlackBytes = 16;

/// Appends `values` as a packed list, without the slack. Time O(values).
void AppendPacked(std::span<const std::uint64_t> values, std::vector<std::byte>& out);

/// A packed list, read from front to back.
/// Threads: const functions from any number of threads.
/// Ownership: borrows the bytes.
class PackedNumbers {
 public:
  /// Opens the list of `count` numbers at the front of `bytes`. Returns nullopt if `bytes` cannot
  /// hold the list and the kPackedSlackBytes after it. Reads remain within `bytes` for any input.
  static std::optional<PackedNumbers> Open(std::span<const std::byte> bytes, std::uint64_t count);

  std::uint64_t count() const { return count_; }
  std::size_t size_bytes() const { return static_cast<std::size_t>(size_bytes_); }

  /// Calls f(number) for each number, in order.
  template <typename F>
  void ForEach(F f) const {
    if (max_width_ <= kOneWordWidth) {
      Read<false>(f);
    } else {
      Read<true>(f);
    }
  }

 private:
  // Max width of a number that fits within 8 bytes at any bit offset.
  static constexpr std::uint32_t kOneWordWidth = 57;

  PackedNumbers() = default;

  std::uint64_t tag_words() const { return (count_ * tag_bits_ + 63) / 64; }

  /// Returns the number of tags per word. Not meaningful for lists without tags.
  std::uint64_t tags_a_word() const { return 64 >> (tag_bits_ / 2); }

  /// Returns the total bits of the numbers whose tags are in word `word`.
  std::uint64_t BitsOfWord(std::uint64_t word) const;

  template <bool kWide>
  std::uint64_t At(const std::byte* numbers, std::uint64_t bit) const {
    const std::byte* const from = numbers + bit / 8;
    const std::uint64_t shift = bit % 8;
    const std::uint64_t low = LoadLittle<std::uint64_t>(from) >> shift;
    if constexpr (!kWide) return low;
    // Shifts twice, because a single shift by 64 - 0 is undefined.
    return low | LoadLittle<std::uint64_t>(from + 8) << 1 << (63 - shift);
  }

  template <bool kWide, typename F>
  void Read(F& f) const {
    const std::byte* const tags = bytes_.data() + kHeadBytes;
    const std::byte* const numbers = tags + tag_words() * 8;
    const std::uint64_t tag_mask = (std::uint64_t{1} << tag_bits_) - 1;
    std::uint64_t bit = 0;
    for (std::uint64_t i = 0; i < count_;) {
      std::uint64_t word =
          tag_bits_ == 0 ? 0 : LoadLittle<std::uint64_t>(tags + i / tags_a_word() * 8);
      const std::uint64_t end = count_ - i < tags_a_word() ? count_ : i + tags_a_word();
      for (; i < end; ++i) {
        const std::size_t tag = word & tag_mask;
        word >>= tag_bits_;
        f(At<kWide>(numbers, bit) & masks_[tag]);
        bit += widths_[tag];
      }
    }
  }

  static constexpr std::size_t kHeadBytes = 8;

  std::span<const std::byte> bytes_;
  std::uint64_t count_ = 0;
  std::uint64_t size_bytes_ = 0;
  std::uint32_t tag_bits_ = 0;
  std::uint32_t max_width_ = 0;
  std::array<std::uint32_t, kPackedClasses> widths_ = {};
  std::array<std::uint64_t, kPackedClasses> masks_ = {};
};

}  // namespace internal
}  // namespace rhizome
