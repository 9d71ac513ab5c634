#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cache/ranges/range_features.h"
#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the cost of vertices [begin, end). It must be non-negative and monotonic: a range costs
/// at least as much as any range inside it.
using RangeCost = std::function<double(std::size_t begin, std::size_t end)>;

/// Cuts vertices into `parts` ranges of consecutive vertices so that the cost of the most expensive
/// range is minimal (to a billionth of the total). Returns the boundaries, [parts + 1], ascending
/// from 0 to `vertices`; ranges may be empty. Time: O(parts log vertices) cost evaluations for each
/// of about 50 bounds.
///
/// Source: ROC (MLSys 2020), section 4.2: ranges of consecutive vertices, whose ends are found by
/// binary search over prefix sums, one search for each end. The search for the smallest maximum is
/// our addition; no other cut into ranges has a smaller maximum.
std::vector<std::size_t> CutByCost(std::size_t vertices, std::size_t parts, const RangeCost& cost);

/// Returns whether moving to other ranges is worth its cost. An iteration takes as long as its most
/// expensive range. `remaining`: number of remaining iterations; `moving`: cost of moving, in the
/// same unit.
bool IsWorthMoving(double largest_now, double largest_then, std::uint64_t remaining, double moving);

}  // namespace internal
}  // namespace rhizome
