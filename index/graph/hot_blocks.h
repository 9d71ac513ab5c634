#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace rhizome {
inline namespace internal {

/// Chooses blocks for a cache that cannot hold all, by expected frequency of use, in two passes
/// over the blocks and with constant memory. The first pass counts the blocks of each class (power
/// of two of the degree). The second takes all blocks of the highest classes that fit, and blocks
/// of the next class until the cache is full.
class HotBlocks {
 public:
  static std::uint32_t ClassOf(std::uint64_t degree) {
    return static_cast<std::uint32_t>(std::bit_width(degree));
  }

  void Count(std::uint32_t degree_class) { ++counts_[degree_class]; }

  /// Must be called after the first pass. `frames` is the number of blocks to choose.
  void Choose(std::uint64_t frames) {
    least_ = static_cast<std::uint32_t>(counts_.size());
    while (least_ > 0 && counts_[least_ - 1] <= frames) frames -= counts_[--least_];
    left_ = frames;
  }

  /// Returns whether the block is chosen. Must be called once for each block.
  bool Take(std::uint32_t degree_class) {
    if (degree_class >= least_) return true;
    if (degree_class + 1 < least_ || left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  std::array<std::uint64_t, 65> counts_{};
  std::uint32_t least_ = 0;  // this class and all above are chosen
  std::uint64_t left_ = 0;   // blocks still to choose from the class below
};

}  // namespace internal
}  // namespace rhizome
