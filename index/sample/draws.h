#pragma once

#include <cstdint>
#include <vector>

#include "index/base/counter_random.h"

namespace rhizome {
inline namespace internal {

/// Draws sets of positions with the exact distribution. It uses only integer arithmetic, so that
/// every platform draws the same sets. Holds scratch memory: use one instance for each thread.
class PositionDrawer {
 public:
  /// Replaces `out` by `draws` distinct positions below `size`. Each set is equally likely; the
  /// order is not random. `draws` must be at most `size`. O(draws) expected.
  void WithoutReplacement(CounterRandom& random, std::uint64_t size, std::uint64_t draws,
                          std::vector<std::uint64_t>& out);

  /// Replaces `out` by `draws` independent positions below `size`, which must be positive.
  static void WithReplacement(CounterRandom& random, std::uint64_t size, std::uint64_t draws,
                              std::vector<std::uint64_t>& out);

 private:
  void Floyd(CounterRandom& random, std::uint64_t size, std::uint64_t draws,
             std::vector<std::uint64_t>& out);
  bool Insert(std::uint64_t position);

  std::vector<std::uint64_t> seen_;  // open addressing; position + 1; 0: free
};

}  // namespace internal
}  // namespace rhizome
