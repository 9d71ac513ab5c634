#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rhizome/cache/range_features.h"
#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The cost of vertices [begin, end); never negative, and no less for a range that holds another.
using RangeCost = std::function<double(std::size_t begin, std::size_t end)>;

/// Cuts vertices into `parts` ranges of consecutive ones, so that the most expensive range costs as
/// little as possible (to a billionth of all). Returns the boundaries, [parts + 1], ascending from
/// 0 to `vertices`; ranges may be empty. Time O(parts log vertices) costs for each of 50 bounds.
///
/// Source: ROC (MLSys 2020), section 4.2: ranges of consecutive vertices, whose ends are found by
/// binary search over prefix sums, one search for each end. The search for the smallest maximum is
/// ours; no other cut into ranges has a smaller one.
std::vector<std::size_t> CutByCost(std::size_t vertices, std::size_t parts, const RangeCost& cost);

/// Is it worth to move on to other ranges? An iteration takes as long as its most expensive range.
/// `remaining`: iterations that are left; `moving`: the cost of moving, in the unit of costs.
bool IsWorthMoving(double largest_now, double largest_then, std::uint64_t remaining, double moving);

}  // namespace internal
}  // namespace rhizome
