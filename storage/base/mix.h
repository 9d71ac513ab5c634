#pragma once

#include <cstdint>

namespace rhizome {
inline namespace internal {

/// A bijection of 64-bit words that scatters them: the output step of the generator SplitMix64
/// (Steele, Lea and Flood, OOPSLA 2014). Always inlined, because kernels that are compiled for
/// wider instructions call it: the linker must not pick their copy for other code.
[[gnu::always_inline]] inline std::uint64_t Mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// Returns the n-th word (from 0) of the SplitMix64 sequence with this seed.
[[gnu::always_inline]] inline std::uint64_t SplitMix64(std::uint64_t seed, std::uint64_t n) {
  return Mix64(seed + n * 0x9E3779B97F4A7C15);
}

/// Maps a scattered word to [0, bound). The bias is below bound / 2^64, which suits hashing and
/// arbitrary choices, but not sampling.
inline std::uint64_t ScaleTo(std::uint64_t word, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(word) * bound) >> 64);
}

}  // namespace internal
}  // namespace rhizome
