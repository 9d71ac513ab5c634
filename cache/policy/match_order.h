#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/policy.h"

namespace rhizome {
inline namespace internal {

/// Returns an order of a trace's steps in which consecutive steps share many keys: order[i] is the
/// index of the i-th step. The order is greedy within windows of `window` steps: the next step is
/// the one that shares the most keys with the step chosen last, the earliest among equals. The
/// trace's first step remains first; each window continues from the last step of the previous
/// window, and no step leaves its window. A window of 0 or 1 returns the original order.
///
/// Source: the Greedy Reorder Strategy of FastGL (section 4.1, Algorithm 1). FastGL divides the
/// number of shared keys by the size of the smaller step. Here the number itself is used, because a
/// cache saves exactly the shared keys. FastGL starts each window with the window's first step.
///
/// Keys are in [0, key_count) and distinct within a step. Time O(window * accesses), memory
/// key_count bits. Deterministic. Errors: any error of CheckTrace; kOutOfMemory.
Result<std::vector<std::uint32_t>> MatchOrder(const Trace& trace, std::uint64_t key_count,
                                              std::size_t window = 8);

/// Returns the trace with its steps permuted by `order`, which must name each step once. Errors:
/// any error of CheckTrace; kInvalidArgument, `order` names a step that does not exist;
/// kOutOfMemory.
Result<Trace> Reordered(const Trace& trace, std::span<const std::uint32_t> order);

}  // namespace internal
}  // namespace rhizome
