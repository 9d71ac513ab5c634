#pragma once

#include <Random123/philox.h>

#include <cstdint>

namespace rhizome {
inline namespace internal {

/// Identifies a stream of random numbers. Equal keys give equal streams and different keys give
/// independent ones, regardless of the thread and of the order of the requests.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t batch = 0;
  std::uint64_t vertex = 0;
  std::uint32_t hop = 0;
  std::uint32_t stream = 0;    ///< distinguishes several uses for one vertex
  std::uint64_t subgraph = 0;  ///< distinguishes the same vertex in several subgraphs
};

/// A counter-based generator (Philox4x64-10, Salmon et al., SC 2011). Block i of a stream is a
/// cipher of (key, i), so there is no state to store or pass on. Bounded numbers are exactly
/// uniform.
class CounterRandom {
 public:
  explicit CounterRandom(const RandomKey& key)
      : key_{{key.seed, key.batch}},
        counter_{{key.vertex, std::uint64_t{key.hop} << 32 | key.stream, 0, key.subgraph}} {}

  std::uint32_t Next32() {
    if (used_ == 8) Refill();
    const std::uint64_t word = block_.v[used_ / 2];
    return static_cast<std::uint32_t>(used_++ % 2 == 0 ? word : word >> 32);
  }

  std::uint64_t Next64() {
    const std::uint64_t low = Next32();
    return std::uint64_t{Next32()} << 32 | low;
  }

  /// Uniform in (0, 1): multiples of 2^-53, shifted by half of that.
  double Unit() { return (static_cast<double>(Next64() >> 11) + 0.5) * 0x1p-53; }

  /// Returns a uniform number in [0, bound); bound > 0. Source: Lemire's multiplication ("Fast
  /// random integer generation in an interval", 2019), which rejects and redraws the few low
  /// products that would bias the result.
  std::uint64_t Below(std::uint64_t bound) {
    return bound <= 0xFFFFFFFF ? Below32(static_cast<std::uint32_t>(bound)) : Below64(bound);
  }

 private:
  std::uint32_t Below32(std::uint32_t bound) {
    std::uint64_t product = std::uint64_t{Next32()} * bound;
    if (static_cast<std::uint32_t>(product) < bound) [[unlikely]] {
      const std::uint32_t biased = (0 - bound) % bound;
      while (static_cast<std::uint32_t>(product) < biased) {
        product = std::uint64_t{Next32()} * bound;
      }
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

  std::uint64_t Below64(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    const std::uint64_t biased = (0 - bound) % bound;
    Wide product = 0;
    do {
      product = static_cast<Wide>(Next64()) * bound;
    } while (static_cast<std::uint64_t>(product) < biased);
    return static_cast<std::uint64_t>(product >> 64);
  }

  void Refill() {
    block_ = r123::Philox4x64()(counter_, key_);
    ++counter_.v[2];
    used_ = 0;
  }

  r123::Philox4x64::key_type key_;
  r123::Philox4x64::ctr_type counter_;
  r123::Philox4x64::ctr_type block_{};
  std::uint32_t used_ = 8;  // halves of block_ already used
};

}  // namespace internal
}  // namespace rhizome
