#include "storage/base/nonzero.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "rhizome/status.h"
#include "storage/base/check.h"
#include "storage/base/little_endian.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kElementBytes = 4;
constexpr std::size_t kGroup = 64;  // elements per word of the bit mask
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

/// Packs one group of up to 64 elements, advances `to` past them, and returns the group's bit mask.
std::uint64_t PackGroup(const std::byte* raw, std::size_t count, std::byte*& to) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto element = LoadLittle<std::uint32_t>(raw + i * kElementBytes);
    if (element == 0) continue;
    bits |= std::uint64_t{1} << i;
    StoreLittle(to, element);
    to += kElementBytes;
  }
  return bits;
}

void UnpackGroup(std::uint64_t bits, const std::byte*& from, std::size_t count, std::byte* out) {
  std::memset(out, 0, count * kElementBytes);
  for (; bits != 0; bits &= bits - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(bits));
    std::memcpy(out + i * kElementBytes, from, kElementBytes);
    from += kElementBytes;
  }
}

#if defined(__x86_64__)
bool HasAvx512() {
  static const bool has =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("popcnt") != 0;
  return has;
}

// Elements in one AVX-512 register.
constexpr std::size_t kLanes = 16;

// VPCOMPRESSD with a memory operand is slow on Zen 4, so elements are compressed into a register,
// which is then stored.
[[gnu::target("avx512f,popcnt")]] std::uint64_t PackWholeGroup(const std::byte* raw,
                                                               std::byte*& to) {
  std::uint64_t bits = 0;
  for (std::size_t first = 0; first < kGroup; first += kLanes) {
    const __m512i elements = _mm512_loadu_si512(raw + first * kElementBytes);
    const __mmask16 set = _mm512_test_epi32_mask(elements, elements);
    const int count = std::popcount(static_cast<unsigned>(set));
    const auto head = static_cast<__mmask16>((1U << count) - 1);
    _mm512_mask_storeu_epi32(to, head, _mm512_maskz_compress_epi32(set, elements));
    to += static_cast<std::size_t>(count) * kElementBytes;
    bits |= static_cast<std::uint64_t>(set) << first;
  }
  return bits;
}

[[gnu::target("avx512f,popcnt")]] void UnpackWholeGroup(std::uint64_t bits, const std::byte*& from,
                                                        std::byte* out) {
  for (std::size_t first = 0; first < kGroup; first += kLanes) {
    const auto set = static_cast<__mmask16>(bits >> first);
    _mm512_storeu_si512(out + first * kElementBytes, _mm512_maskz_expandloadu_epi32(set, from));
    from += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(set))) * kElementBytes;
  }
}
#else
bool HasAvx512() { return false; }
std::uint64_t PackWholeGroup(const std::byte* raw, std::byte*& to) {
  return PackGroup(raw, kGroup, to);
}
void UnpackWholeGroup(std::uint64_t bits, const std::byte*& from, std::byte* out) {
  UnpackGroup(bits, from, kGroup, out);
}
#endif

std::size_t WordsOf(std::size_t elements) { return (elements + kGroup - 1) / kGroup; }

/// Checks that the frame's length matches its bit mask. Errors: kCorruption.
Status CheckFrame(std::span<const std::byte> frame, std::size_t elements) {
  const std::size_t words = WordsOf(elements);
  if (frame.size() < words * kWordBytes)
    return Status::Corruption("is shorter than the bitmap of its elements");
  std::uint64_t set = 0;
  std::uint64_t last = 0;
  for (std::size_t word = 0; word < words; ++word) {
    last = LoadLittle<std::uint64_t>(frame.data() + word * kWordBytes);
    set += static_cast<std::uint64_t>(std::popcount(last));
  }
  if (elements % kGroup != 0 && last >> (elements % kGroup) != 0)
    return Status::Corruption("has bits set beyond the last element");
  const std::uint64_t expected = words * kWordBytes + set * kElementBytes;
  if (frame.size() == expected) return Status::Ok();
  return Status::Corruption(
      fmt::format("has {} bytes, but the bitmap of its elements needs {}", frame.size(), expected));
}

}  // namespace

std::size_t PackNonzero(std::span<const std::byte> raw, std::span<std::byte> out) {
  RHIZOME_CHECK(raw.size() % kElementBytes == 0 && out.size() >= MaxNonzeroBytes(raw.size()));
  const std::size_t elements = raw.size() / kElementBytes;
  std::byte* word = out.data();
  std::byte* to = out.data() + WordsOf(elements) * kWordBytes;
  for (std::size_t first = 0; first < elements; first += kGroup, word += kWordBytes) {
    const std::byte* const group = raw.data() + first * kElementBytes;
    const std::size_t count = std::min(kGroup, elements - first);
    const bool fast = count == kGroup && HasAvx512();
    StoreLittle(word, fast ? PackWholeGroup(group, to) : PackGroup(group, count, to));
  }
  return static_cast<std::size_t>(to - out.data());
}

Status UnpackNonzero(std::span<const std::byte> frame, std::span<std::byte> out) {
  if (out.size() % kElementBytes != 0)
    return Status::Corruption(
        fmt::format("{} bytes are not a whole number of elements", out.size()));
  const std::size_t elements = out.size() / kElementBytes;
  RHIZOME_RETURN_IF_ERROR(CheckFrame(frame, elements));
  const std::byte* word = frame.data();
  const std::byte* from = frame.data() + WordsOf(elements) * kWordBytes;
  for (std::size_t first = 0; first < elements; first += kGroup, word += kWordBytes) {
    const auto bits = LoadLittle<std::uint64_t>(word);
    std::byte* const group = out.data() + first * kElementBytes;
    const std::size_t count = std::min(kGroup, elements - first);
    if (count == kGroup && HasAvx512()) {
      UnpackWholeGroup(bits, from, group);
    } else {
      UnpackGroup(bits, from, count, group);
    }
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
