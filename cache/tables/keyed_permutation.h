#pragma once

#include <cstdint>

namespace rhizome {
inline namespace internal {

/// A permutation of [0, size) that depends on a key and needs no table: an unbalanced Feistel
/// network over the smallest power of two that is not below `size` (nor 64), applied again until
/// the result is below `size` (cycle walking; from 64 on, twice on average at most).
/// Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains" (CT-RSA 2002).
/// Threads: const.
class KeyedPermutation {
 public:
  /// `size` is at least 1 and at most 2^62.
  KeyedPermutation(std::uint64_t size, std::uint64_t key);

  std::uint64_t size() const { return size_; }

  /// Returns the image of a position below size().
  std::uint64_t operator()(std::uint64_t position) const;

 private:
  std::uint64_t Encrypt(std::uint64_t word) const;

  const std::uint64_t size_;
  const std::uint64_t key_;
  std::uint32_t low_bits_ = 0;
  std::uint32_t high_bits_ = 0;
};

}  // namespace internal
}  // namespace rhizome
