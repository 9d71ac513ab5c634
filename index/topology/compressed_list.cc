// Elias-Fano coding. A list is one byte with the number of low bits, the samples, the low parts
// (`low_bits` bits a number) and the high parts (a bitmap with bit (value >> low_bits) + i set for
// number i). At(i) finds the i-th set bit of the bitmap: it starts at the last sample at or before
// i, skips whole words by popcount, and selects within one word.

#include "index/topology/compressed_list.h"

#include <algorithm>
#include <array>
#include <bit>

#include "storage/base/check.h"
#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {
namespace {

// This is above the bits that any value (a neighbour, with the rank of its type) needs, and small
// enough that the low part of a number is within 8 bytes wherever it begins.
constexpr std::uint32_t kMaxLowBits = 56;

constexpr std::uint64_t kSampleBytes = sizeof(std::uint64_t);

std::uint64_t SampleCount(std::uint64_t count) {
  return count == 0 ? 0 : (count - 1) / CompressedList::kSampleEvery;
}

void SetBits(std::span<std::byte> bytes, std::uint64_t bit, std::uint64_t value,
             std::uint32_t width) {
  for (std::uint32_t done = 0; done < width;) {
    const std::uint32_t shift = (bit + done) % 8;
    const std::uint32_t taken = std::min<std::uint32_t>(8 - shift, width - done);
    const std::uint64_t part = (value >> done) & ((std::uint64_t{1} << taken) - 1);
    bytes[(bit + done) / 8] |= static_cast<std::byte>(part << shift);
    done += taken;
  }
}

// The value 1, and the top bit, in each byte of a word.
constexpr std::uint64_t kOnes = 0x0101010101010101U;
constexpr std::uint64_t kTops = 0x8080808080808080U;

/// Returns a word whose byte b is the number of bits set in bytes 0..b. It uses plain arithmetic
/// because in builds for any processor std::popcount is a library call.
std::uint64_t ByteSums(std::uint64_t word) {
  std::uint64_t sums = word - ((word >> 1) & 0x5555555555555555U);
  sums = (sums & 0x3333333333333333U) + ((sums >> 2) & 0x3333333333333333U);
  return ((sums + (sums >> 4)) & 0x0F0F0F0F0F0F0F0FU) * kOnes;
}

/// Returns the position of the k-th set bit (k from 0, below the number of set bits), given the
/// word's ByteSums. It finds the byte by one subtraction (S. Vigna, Broadword Implementation of
/// Rank/Select Queries, 2008), then clears bit by bit.
std::uint64_t SelectInWord(std::uint64_t word, std::uint64_t sums, std::uint64_t k) {
  RHIZOME_DCHECK(k < sums >> 56);
  const std::uint64_t at_most_k = (((k * kOnes) | kTops) - sums) & kTops;
  const std::uint64_t byte = ((at_most_k >> 7) * kOnes) >> 56;
  const std::uint64_t before = (sums << 8 >> (8 * byte)) & 0xFF;
  std::uint64_t rest = (word >> (8 * byte)) & 0xFF;
  for (std::uint64_t skip = k - before; skip > 0; --skip) rest &= rest - 1;
  return 8 * byte + static_cast<std::uint64_t>(std::countr_zero(rest));
}

}  // namespace

void AppendCompressedList(std::span<const std::uint64_t> values, std::vector<std::byte>& out) {
  const std::uint64_t count = values.size();
  if (count == 0) return;
  RHIZOME_DCHECK(std::is_sorted(values.begin(), values.end()));
  const std::uint64_t ratio = values.back() / count;
  const std::uint32_t low_bits =
      ratio == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(ratio)) - 1;
  RHIZOME_DCHECK(low_bits <= kMaxLowBits);
  const std::uint64_t samples_at = out.size() + 1;
  const std::uint64_t low_at = samples_at + SampleCount(count) * kSampleBytes;
  const std::uint64_t high_at = low_at + (count * low_bits + 7) / 8;
  out.resize(high_at + ((values.back() >> low_bits) + count + 7) / 8);
  out[samples_at - 1] = static_cast<std::byte>(low_bits);
  const std::span<std::byte> low = std::span(out).subspan(low_at, high_at - low_at);
  const std::span<std::byte> high = std::span(out).subspan(high_at);
  for (std::uint64_t i = 0; i < count; ++i) {
    SetBits(low, i * low_bits, values[i], low_bits);
    const std::uint64_t place = (values[i] >> low_bits) + i;
    SetBits(high, place, 1, 1);
    if (i == 0 || i % CompressedList::kSampleEvery != 0) continue;
    StoreLittle(out.data() + samples_at + (i / CompressedList::kSampleEvery - 1) * kSampleBytes,
                place);
  }
}

std::optional<CompressedList> CompressedList::Open(std::span<const std::byte> bytes,
                                                   std::uint64_t count) {
  CompressedList list;
  list.count_ = count;
  if (count == 0) return bytes.empty() ? std::optional(list) : std::nullopt;
  // Each number takes at least one bit. A count that passes this check cannot overflow the sums
  // below.
  if (bytes.empty() || count > bytes.size() * 8) return std::nullopt;
  list.low_bits_ = static_cast<std::uint32_t>(bytes[0]);
  if (list.low_bits_ > kMaxLowBits) return std::nullopt;
  list.bytes_ = bytes;
  list.low_at_ = 1 + SampleCount(count) * kSampleBytes;
  list.high_at_ = list.low_at_ + (count * list.low_bits_ + 7) / 8;
  if (list.high_at_ >= bytes.size()) return std::nullopt;
  return list;
}

/// Loads 8 bytes from `at`; bytes after the end are zeros.
std::uint64_t CompressedList::Load(std::uint64_t at) const {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  if (at + kWord <= bytes_.size()) return LoadLittle<std::uint64_t>(bytes_.data() + at);
  if (at >= bytes_.size()) return 0;
  if (bytes_.size() >= kWord) {
    return LoadLittle<std::uint64_t>(bytes_.data() + bytes_.size() - kWord) >>
           (8 * (at + kWord - bytes_.size()));
  }
  std::array<std::byte, kWord> padded = {};
  std::copy(bytes_.begin() + static_cast<std::ptrdiff_t>(at), bytes_.end(), padded.begin());
  return LoadLittle<std::uint64_t>(padded.data());
}

std::uint64_t CompressedList::Sample(std::uint64_t number) const {
  return LoadLittle<std::uint64_t>(bytes_.data() + 1 + (number - 1) * kSampleBytes);
}

std::uint64_t CompressedList::Low(std::uint64_t i) const {
  const std::uint64_t bit = i * low_bits_;
  return (Load(low_at_ + bit / 8) >> (bit % 8)) & ((std::uint64_t{1} << low_bits_) - 1);
}

std::optional<std::uint64_t> CompressedList::At(std::uint64_t i) const {
  std::uint64_t place = 0;  // the high bits before it belong to the entries before the sample
  std::uint64_t skip = i;
  if (const std::uint64_t sample = i / kSampleEvery; sample > 0) {
    place = Sample(sample);
    skip = i % kSampleEvery;
  }
  const std::uint64_t words = high_words();
  std::uint64_t at = place / 64;
  if (at >= words) return std::nullopt;
  std::uint64_t word = HighWord(at) & (~std::uint64_t{0} << (place % 64));
  std::uint64_t sums = ByteSums(word);
  for (std::uint64_t here = sums >> 56; skip >= here; here = sums >> 56) {
    skip -= here;
    if (++at >= words) return std::nullopt;
    word = HighWord(at);
    sums = ByteSums(word);
  }
  place = at * 64 + SelectInWord(word, sums, skip);
  if (place < i) return std::nullopt;
  return ((place - i) << low_bits_) | Low(i);
}

bool CompressedList::Decode(std::span<std::uint64_t> out) const {
  return DecodeAs(std::uint64_t{1} << 63, out);
}

bool CompressedList::DecodeBelow(std::uint64_t limit, std::span<std::uint32_t> out) const {
  return DecodeAs(std::min(limit, std::uint64_t{1} << 32), out);
}

template <typename T>
bool CompressedList::DecodeAs(std::uint64_t limit, std::span<T> out) const {
  if (out.size() != count_) return false;
  const std::uint64_t words = high_words();
  std::uint64_t i = 0;
  std::uint64_t before = 0;
  std::uint64_t used_bytes = 0;
  for (std::uint64_t w = 0; w < words; ++w) {
    for (std::uint64_t rest = HighWord(w); rest != 0; rest &= rest - 1) {
      if (i == count_) return false;
      const std::uint64_t place = w * 64 + static_cast<std::uint64_t>(std::countr_zero(rest));
      if (i > 0 && i % kSampleEvery == 0 && Sample(i / kSampleEvery) != place) return false;
      const std::uint64_t value = ((place - i) << low_bits_) | Low(i);
      if (value < before || value >= limit) return false;
      before = value;
      out[i++] = static_cast<T>(value);
      used_bytes = place / 8 + 1;
    }
  }
  return i == count_ && (count_ == 0 || used_bytes == bytes_.size() - high_at_);
}

}  // namespace internal
}  // namespace rhizome
