#include "rhizome/gnn/packed_numbers.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rhizome {
namespace {

constexpr std::uint32_t kMaxWidth = 64;

/// How many numbers are at most so wide, by width.
using WidthCounts = std::array<std::uint64_t, kMaxWidth + 1>;

/// Widths ascend; those of classes that are not used repeat the last.
struct Classes {
  std::uint32_t tag_bits = 0;
  std::array<std::uint32_t, kPackedClasses> widths = {};

  std::size_t count() const { return std::size_t{1} << tag_bits; }
  std::uint32_t TagOf(std::uint32_t width) const {
    std::uint32_t tag = 0;
    while (widths[tag] < width) ++tag;
    return tag;
  }
};

WidthCounts CountWidths(std::span<const std::uint64_t> values) {
  WidthCounts counts = {};
  for (const std::uint64_t value : values)
    ++counts[static_cast<std::size_t>(std::bit_width(value))];
  for (std::size_t w = 1; w < counts.size(); ++w) counts[w] += counts[w - 1];
  return counts;
}

/// Bits of all numbers and their tags.
std::uint64_t BitsOf(const Classes& classes, const WidthCounts& counts) {
  std::uint64_t bits = counts.back() * classes.tag_bits;
  std::uint64_t narrower = 0;
  for (std::size_t c = 0; c < classes.count(); ++c) {
    const std::uint64_t at_most = counts[classes.widths[c]];
    bits += (at_most - narrower) * classes.widths[c];
    narrower = at_most;
  }
  return bits;
}

/// The cheapest of all: at most 64^3 / 6 candidates, with the widest class as wide as it must be.
Classes ChooseClasses(std::span<const std::uint64_t> values) {
  const WidthCounts counts = CountWidths(values);
  std::uint32_t widest = 0;
  while (counts[widest] < counts.back()) ++widest;
  // Without tags a number of width 0 would cost nothing.
  const std::uint32_t least = std::max(widest, 1U);
  Classes best{.tag_bits = 0, .widths = {least, least, least, least}};
  std::uint64_t best_bits = BitsOf(best, counts);
  const auto offer = [&](const Classes& candidate) {
    const std::uint64_t bits = BitsOf(candidate, counts);
    if (bits >= best_bits) return;
    best = candidate;
    best_bits = bits;
  };
  for (std::uint32_t a = 0; a < widest; ++a) {
    offer({.tag_bits = 1, .widths = {a, widest, widest, widest}});
    for (std::uint32_t b = a + 1; b < widest; ++b) {
      for (std::uint32_t c = b + 1; c < widest; ++c) {
        offer({.tag_bits = 2, .widths = {a, b, c, widest}});
      }
    }
  }
  return best;
}

/// Writes bits one behind the other.
class BitWriter {
 public:
  explicit BitWriter(std::byte* to) : to_(to) {}

  void Put(std::uint64_t value, std::uint32_t width) {
    word_ |= value << used_;
    if (used_ + width < 64) {
      used_ += width;
      return;
    }
    StoreLittle(to_, word_);
    to_ += 8;
    const std::uint32_t written = 64 - used_;
    word_ = written == 64 ? 0 : value >> written;
    used_ = width - written;
  }

  /// Writes what is left, in whole bytes.
  void Finish() { std::memcpy(to_, &word_, (used_ + 7) / 8); }

 private:
  std::byte* to_;
  std::uint64_t word_ = 0;
  std::uint32_t used_ = 0;  // bits of word_, below 64
};

}  // namespace

void AppendPacked(std::span<const std::uint64_t> values, std::vector<std::byte>& out) {
  const Classes classes = ChooseClasses(values);
  const std::uint64_t tag_bytes = (values.size() * classes.tag_bits + 63) / 64 * 8;
  const std::uint64_t number_bits =
      BitsOf(classes, CountWidths(values)) - values.size() * classes.tag_bits;
  const std::size_t at = out.size();
  out.resize(at + 8 + tag_bytes + (number_bits + 7) / 8);
  std::byte* const head = out.data() + at;
  head[0] = static_cast<std::byte>(classes.tag_bits);
  for (std::size_t c = 0; c < kPackedClasses; ++c) {
    head[1 + c] = static_cast<std::byte>(classes.widths[c]);
  }
  BitWriter tags(head + 8);
  BitWriter numbers(head + 8 + tag_bytes);
  for (const std::uint64_t value : values) {
    const std::uint32_t tag = classes.TagOf(static_cast<std::uint32_t>(std::bit_width(value)));
    tags.Put(tag, classes.tag_bits);
    numbers.Put(value, classes.widths[tag]);
  }
  tags.Finish();
  numbers.Finish();
}

std::uint64_t PackedNumbers::BitsOfWord(std::uint64_t word) const {
  constexpr std::uint64_t kEven = 0x5555555555555555U;
  const std::uint64_t first = word * tags_a_word();
  const std::uint64_t numbers = std::min(count_ - first, tags_a_word());
  const std::uint64_t tags = LoadLittle<std::uint64_t>(bytes_.data() + kHeadBytes + word * 8);
  const auto ones = [](std::uint64_t bits) {
    return static_cast<std::uint64_t>(std::popcount(bits));
  };
  // Tags behind the last number are none.
  const std::uint64_t used =
      numbers * tag_bits_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << numbers * tag_bits_) - 1;
  if (tag_bits_ == 1) {
    const std::uint64_t second = ones(tags & used);
    return (numbers - second) * widths_[0] + second * widths_[1];
  }
  const std::uint64_t low = tags & used & kEven;
  const std::uint64_t high = (tags & used) >> 1 & kEven;
  const std::uint64_t fourth = ones(low & high);
  const std::uint64_t third = ones(high) - fourth;
  const std::uint64_t second = ones(low) - fourth;
  return (numbers - second - third - fourth) * widths_[0] + second * widths_[1] +
         third * widths_[2] + fourth * widths_[3];
}

std::optional<PackedNumbers> PackedNumbers::Open(std::span<const std::byte> bytes,
                                                 std::uint64_t count) {
  if (bytes.size() < kHeadBytes + kPackedSlackBytes) return std::nullopt;
  const std::uint64_t room = bytes.size() - kHeadBytes - kPackedSlackBytes;
  if (count > room * 8) return std::nullopt;  // a number costs a bit; and no overflow below
  PackedNumbers list;
  list.bytes_ = bytes;
  list.count_ = count;
  list.tag_bits_ = static_cast<std::uint32_t>(bytes[0]);
  if (list.tag_bits_ > 2) return std::nullopt;
  for (std::size_t c = 0; c < kPackedClasses; ++c) {
    const auto width = static_cast<std::uint32_t>(bytes[1 + c]);
    if (width > kMaxWidth) return std::nullopt;
    list.widths_[c] = width;
    list.masks_[c] = width == kMaxWidth ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    list.max_width_ = std::max(list.max_width_, width);
  }
  if (list.tag_bits_ == 0 && list.widths_[0] == 0) return std::nullopt;
  if (list.tag_words() > room / 8) return std::nullopt;
  std::uint64_t bits = list.tag_bits_ == 0 ? count * list.widths_[0] : 0;
  for (std::uint64_t w = 0; w < list.tag_words(); ++w) bits += list.BitsOfWord(w);
  const std::uint64_t used = list.tag_words() * 8 + (bits + 7) / 8;
  if (used > room) return std::nullopt;
  list.size_bytes_ = kHeadBytes + used;
  return list;
}

}  // namespace rhizome
