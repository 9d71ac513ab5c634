#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace rhizome::inline internal {

/// Chooses blocks for a cache that cannot hold all, by how often they will be wanted, in two passes
/// over them and no memory: count the blocks of each class (power of two of the degree), then take
/// the highest classes, and of the last one as many as there is room for.
class HotBlocks {
 public:
  static std::uint32_t ClassOf(std::uint64_t degree) {
    return static_cast<std::uint32_t>(std::bit_width(degree));
  }

  void Count(std::uint32_t degree_class) { ++counts_[degree_class]; }

  /// After the first pass. `frames`: how many may be taken.
  void Choose(std::uint64_t frames) {
    least_ = static_cast<std::uint32_t>(counts_.size());
    while (least_ > 0 && counts_[least_ - 1] <= frames) frames -= counts_[--least_];
    left_ = frames;
  }

  /// Is this block one of them? Once for each block.
  bool Take(std::uint32_t degree_class) {
    if (degree_class >= least_) return true;
    if (degree_class + 1 < least_ || left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  std::array<std::uint64_t, 65> counts_{};
  std::uint32_t least_ = 0;  // from this class on all are taken
  std::uint64_t left_ = 0;   // of the class below
};

}  // namespace rhizome::inline internal
