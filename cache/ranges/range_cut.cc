#include "cache/ranges/range_cut.h"

#include <algorithm>

namespace rhizome {
inline namespace internal {
namespace {

/// Cuts ranges that are as long as possible with a cost of at most `bound`; the last one takes the
/// rest.
std::vector<std::size_t> CutBelow(std::size_t vertices, std::size_t parts, const RangeCost& cost,
                                  double bound) {
  std::vector<std::size_t> ends = {0};
  for (std::size_t part = 1; part < parts; ++part) {
    const std::size_t begin = ends.back();
    std::size_t fits = begin;  // end of a range that fits
    std::size_t beyond = vertices + 1;
    while (beyond - fits > 1) {
      const std::size_t middle = fits + (beyond - fits) / 2;
      (cost(begin, middle) <= bound ? fits : beyond) = middle;
    }
    ends.push_back(fits);
  }
  ends.push_back(vertices);
  return ends;
}

double Largest(const std::vector<std::size_t>& ends, const RangeCost& cost) {
  double largest = 0;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i)
    largest = std::max(largest, cost(ends[i], ends[i + 1]));
  return largest;
}

}  // namespace

std::vector<std::size_t> CutByCost(std::size_t vertices, std::size_t parts, const RangeCost& cost) {
  parts = std::max<std::size_t>(parts, 1);
  double above = cost(0, vertices);  // a feasible bound
  double below = above / static_cast<double>(parts);
  const double enough = 1e-9 * above;
  std::vector<std::size_t> best = CutBelow(vertices, parts, cost, above);
  while (above - below > enough) {
    const double bound = below + (above - below) / 2;
    std::vector<std::size_t> ends = CutBelow(vertices, parts, cost, bound);
    const double largest = Largest(ends, cost);
    if (largest <= bound) {
      above = largest < below ? below : largest;
      best = std::move(ends);
    } else {
      below = bound;
    }
  }
  return best;
}

bool IsWorthMoving(double largest_now, double largest_then, std::uint64_t remaining,
                   double moving) {
  return (largest_now - largest_then) * static_cast<double>(remaining) > moving;
}

}  // namespace internal
}  // namespace rhizome
