#include "cache/feed/packed_numbers.h"

#include <algorithm>
#include <bit>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint32_t kPackedNumbersMaxWidth = 64;

/// Returns the number of bits of `value`. Unlike std::bit_width of zero on targets without a
/// leading-zero count, it does not branch: zeros occur at random in lists of neighbours.
std::uint32_t WidthOf(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::bit_width(value | 1)) - (value == 0 ? 1U : 0U);
}

/// The number of values with at most w bits, by width w.
using WidthCounts = std::array<std::uint64_t, kPackedNumbersMaxWidth + 1>;

/// Widths of the classes, ascending; unused classes repeat the last width.
struct Classes {
  std::uint32_t tag_bits = 0;
  std::array<std::uint32_t, kPackedClasses> widths = {};

  std::size_t count() const { return std::size_t{1} << tag_bits; }
  std::uint64_t tags_a_word() const { return 64 >> (tag_bits / 2); }
};

WidthCounts CountWidths(std::span<const std::uint64_t> values) {
  WidthCounts counts = {};
  for (const std::uint64_t value : values) ++counts[WidthOf(value)];
  for (std::size_t w = 1; w < counts.size(); ++w) counts[w] += counts[w - 1];
  return counts;
}

/// Returns the bits of all numbers and their tags.
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

/// Returns the classes that need the fewest bits, among at most 64^3 / 6 candidates. The widest
/// class has the width of the largest number.
Classes ChooseClasses(const WidthCounts& counts) {
  std::uint32_t widest = 0;
  while (counts[widest] < counts.back()) ++widest;
  // Without tags, a number of width 0 would take no bits at all.
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

/// Returns the class of a number, indexed by the number's width.
std::array<std::uint8_t, kPackedNumbersMaxWidth + 1> TagsByWidth(const Classes& classes) {
  RHIZOME_DCHECK(std::is_sorted(classes.widths.begin(), classes.widths.end()));
  std::array<std::uint8_t, kPackedNumbersMaxWidth + 1> tags = {};
  std::uint8_t tag = 0;
  for (std::uint32_t width = 0; width <= classes.widths.back(); ++width) {
    if (width > classes.widths[tag]) ++tag;
    RHIZOME_DCHECK(width <= classes.widths[tag] && tag < classes.count());
    tags[width] = tag;
  }
  return tags;
}

/// Writes numbers bit by bit without gaps, followed by up to kOverrun zero bytes. It does not
/// branch on the widths, which are unpredictable.
class BitWriter {
 public:
  static constexpr std::size_t kOverrun = 8;

  explicit BitWriter(std::byte* to) : to_(to) {}

  void Put(std::uint64_t value, std::uint32_t width) {
    RHIZOME_DCHECK(WidthOf(value) <= width);
    if (width > 56) {  // more than a word, together with the bits of a begun byte
      PutFew(value & 0xFFFFFFFFU, 32);
      PutFew(value >> 32, width - 32);
    } else {
      PutFew(value, width);
    }
  }

  /// Returns the position after the last byte that contains bits of a number.
  const std::byte* end() const { return to_ + (used_ != 0); }

 private:
  void PutFew(std::uint64_t value, std::uint32_t width) {
    word_ |= value << used_;
    StoreLittle(to_, word_);
    used_ += width;
    to_ += used_ / 8;
    word_ >>= used_ / 8 * 8;
    used_ %= 8;
  }

  std::byte* to_;
  std::uint64_t word_ = 0;
  std::uint32_t used_ = 0;  // number of bits in word_; less than 8 between two numbers
};

}  // namespace

// Steps: (1) count the numbers by width and choose the classes that minimise the size; (2) write
// the head; (3) write the tags, word by word; (4) write the numbers without gaps. `out` temporarily
// includes space for the overrun of BitWriter.
void AppendPacked(std::span<const std::uint64_t> values, std::vector<std::byte>& out) {
  const WidthCounts counts = CountWidths(values);
  const Classes classes = ChooseClasses(counts);
  const std::array<std::uint8_t, kPackedNumbersMaxWidth + 1> tag_of = TagsByWidth(classes);
  const auto tag = [&tag_of](std::uint64_t value) { return tag_of[WidthOf(value)]; };
  const std::uint64_t all_tags = values.size() * classes.tag_bits;
  const std::uint64_t tag_bytes = (all_tags + 63) / 64 * 8;
  const std::size_t at = out.size();
  const std::size_t end = at + 8 + tag_bytes + (BitsOf(classes, counts) - all_tags + 7) / 8;
  out.resize(end + BitWriter::kOverrun);
  std::byte* const head = out.data() + at;
  head[0] = static_cast<std::byte>(classes.tag_bits);
  for (std::size_t c = 0; c < kPackedClasses; ++c) {
    head[1 + c] = static_cast<std::byte>(classes.widths[c]);
  }
  for (std::uint64_t i = 0; classes.tag_bits > 0 && i < values.size(); i += classes.tags_a_word()) {
    std::uint64_t word = 0;
    const std::uint64_t some = std::min(classes.tags_a_word(), values.size() - i);
    for (std::uint64_t j = 0; j < some; ++j) {
      word |= std::uint64_t{tag(values[i + j])} << j * classes.tag_bits;
    }
    StoreLittle(head + 8 + i / classes.tags_a_word() * 8, word);
  }
  BitWriter numbers(head + 8 + tag_bytes);
  for (const std::uint64_t value : values) numbers.Put(value, classes.widths[tag(value)]);
  RHIZOME_DCHECK(numbers.end() == out.data() + end);
  out.resize(end);
}

std::uint64_t PackedNumbers::BitsOfWord(std::uint64_t word) const {
  constexpr std::uint64_t kEven = 0x5555555555555555U;
  const std::uint64_t first = word * tags_a_word();
  const std::uint64_t numbers = std::min(count_ - first, tags_a_word());
  const std::uint64_t tags = LoadLittle<std::uint64_t>(bytes_.data() + kHeadBytes + word * 8);
  const auto ones = [](std::uint64_t bits) {
    return static_cast<std::uint64_t>(std::popcount(bits));
  };
  // Excludes the bits after the last tag of the list.
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
  // A number takes at least one bit; this also excludes overflow below.
  if (count > room * 8) return std::nullopt;
  PackedNumbers list;
  list.bytes_ = bytes;
  list.count_ = count;
  list.tag_bits_ = static_cast<std::uint32_t>(bytes[0]);
  if (list.tag_bits_ > 2) return std::nullopt;
  for (std::size_t c = 0; c < kPackedClasses; ++c) {
    const auto width = static_cast<std::uint32_t>(bytes[1 + c]);
    if (width > kPackedNumbersMaxWidth) return std::nullopt;
    list.widths_[c] = width;
    list.masks_[c] =
        width == kPackedNumbersMaxWidth ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
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

}  // namespace internal
}  // namespace rhizome
