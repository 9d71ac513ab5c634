#pragma once

#include <cstdint>

#include "rhizome/cache/policies.h"
#include "rhizome/cache/policy.h"
#include "rhizome/storage/read_cost.h"

namespace rhizome {

/// The cost of a trace's reads on a disk with a given ReadCost. Keys are rows of equal size, in
/// the order in which they lie on disk.
struct ReplayTime {
  double seconds = 0;
  std::uint64_t rows = 0;   ///< rows read
  std::uint64_t reads = 0;  ///< reads issued
  std::uint64_t bytes = 0;  ///< bytes of those reads, gaps included
};

/// Replays a whole trace and sums what its reads take. The prefill and each step are read in one
/// coalesced sweep each.
ReplayTime ReplayReads(Policy& policy, const Trace& trace, std::uint64_t row_bytes,
                       const ReadCost& cost);

/// Replays a trace in superbatches of `superbatch` steps, 1 <= superbatch <= trace.steps(), each
/// with a policy of its own made from `options`. Only the prefill rows that the pool does not hold
/// from the superbatch before are read. Returns the mean seconds of a step, without the first
/// superbatch (which finds the pool empty) unless it is the only one. Steps after the last whole
/// superbatch are left out.
double ReplaySuperbatches(const Trace& trace, std::size_t superbatch, const PolicyOptions& options);

}  // namespace rhizome
