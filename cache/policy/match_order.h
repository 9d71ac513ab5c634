#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/policy.h"

namespace rhizome::inline internal {

/// An order of a trace's steps in which neighbours share many keys: order[i] is the step that comes
/// i-th. Within each window of `window` steps, greedily: always the step that shares most keys with
/// the one chosen last, of equals the earliest. The trace's first step comes first; a window
/// continues from the last step of the one before, and no step leaves its window. A window of 0 or
/// 1 changes nothing.
///
/// Source: the Greedy Reorder Strategy of FastGL (section 4.1, Algorithm 1), which divides shared
/// keys by the smaller step; what a cache saves is the shared keys themselves.
///
/// Keys lie in [0, key_count) and are distinct within a step. Time O(window * accesses), memory
/// key_count bits. Deterministic. Errors: those of CheckTrace; kOutOfMemory.
Result<std::vector<std::uint32_t>> MatchOrder(const Trace& trace, std::uint64_t key_count,
                                              std::size_t window = 8);

/// The trace with its steps in another order: `order` holds each of them once. Errors: those of
/// CheckTrace; kInvalidArgument, `order` names a step that there is not; kOutOfMemory.
Result<Trace> Reordered(const Trace& trace, std::span<const std::uint32_t> order);

}  // namespace rhizome::inline internal
