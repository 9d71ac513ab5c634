#include "index/sample/draws.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "storage/base/check.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

namespace {

// Up to this number of draws, comparing with all earlier draws is faster than a hash set.
constexpr std::uint64_t kFewDraws = 32;

// Up to this number of positions for each draw, a walk over all positions is faster.
constexpr std::uint64_t kDensePositions = 4;

// Floyd's algorithm: for j = size - draws .. size - 1, it draws a random position up to j, and uses
// j itself if that position was drawn before.
void FloydByComparing(CounterRandom& random, std::uint64_t size, std::uint64_t draws,
                      std::vector<std::uint64_t>& out) {
  out.resize(draws);
  for (std::uint64_t i = 0; i < draws; ++i) {
    const std::uint64_t last = size - draws + i;
    const std::uint64_t position = random.Below(last + 1);
    // The loop has no early exit, because the branch could not be predicted.
    bool taken = false;
    for (std::uint64_t k = 0; k < i; ++k) taken |= out[k] == position;
    out[i] = taken ? last : position;
    RHIZOME_DCHECK(std::find(out.data(), out.data() + i, out[i]) == out.data() + i);  // distinct
  }
}

// Knuth's algorithm S: selects each position with probability (still needed) / (still left).
void SelectInOrder(CounterRandom& random, std::uint64_t size, std::uint64_t draws,
                   std::vector<std::uint64_t>& out) {
  for (std::uint64_t i = 0; out.size() < draws; ++i) {
    RHIZOME_DCHECK(i < size);
    if (random.Below(size - i) < draws - out.size()) out.push_back(i);
  }
}

}  // namespace

void PositionDrawer::WithReplacement(CounterRandom& random, std::uint64_t size, std::uint64_t draws,
                                     std::vector<std::uint64_t>& out) {
  RHIZOME_DCHECK(size > 0 || draws == 0);
  out.resize(draws);
  for (std::uint64_t& position : out) position = random.Below(size);
}

void PositionDrawer::WithoutReplacement(CounterRandom& random, std::uint64_t size,
                                        std::uint64_t draws, std::vector<std::uint64_t>& out) {
  RHIZOME_DCHECK(draws <= size);
  if (draws <= kFewDraws) return FloydByComparing(random, size, draws, out);
  out.clear();
  if (size / kDensePositions <= draws) return SelectInOrder(random, size, draws, out);
  Floyd(random, size, draws, out);
}

void PositionDrawer::Floyd(CounterRandom& random, std::uint64_t size, std::uint64_t draws,
                           std::vector<std::uint64_t>& out) {
  seen_.assign(std::bit_ceil(2 * draws), 0);
  for (std::uint64_t j = size - draws; j < size; ++j) {
    std::uint64_t position = random.Below(j + 1);
    if (!Insert(position)) {
      position = j;
      const bool fresh = Insert(j);
      RHIZOME_DCHECK(fresh);  // all earlier ones are below j
    }
    out.push_back(position);
  }
}

bool PositionDrawer::Insert(std::uint64_t position) {
  const std::uint64_t mask = seen_.size() - 1;
  std::uint64_t slot = Mix64(position) & mask;
  for (; seen_[slot] != 0; slot = (slot + 1) & mask) {
    if (seen_[slot] == position + 1) return false;
  }
  seen_[slot] = position + 1;
  return true;
}

}  // namespace internal
}  // namespace rhizome
