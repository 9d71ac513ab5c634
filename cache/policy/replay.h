#pragma once

#include <cstdint>

#include "rhizome/minibatch_options.h"
#include "rhizome/policy.h"
#include "storage/array/read_cost.h"

namespace rhizome {
inline namespace internal {

/// Cost of a trace's reads on a disk with a given ReadCost. Keys are rows of equal size, in disk
/// order.
struct ReplayTime {
  double seconds = 0;
  std::uint64_t rows = 0;   ///< rows read
  std::uint64_t reads = 0;  ///< reads issued
  std::uint64_t bytes = 0;  ///< bytes of these reads, gaps included
};

/// Replays a whole trace and sums its read times. The reads of each step, and of the prefill, are
/// one coalesced sweep. Errors: any error of CheckTrace or Policy::Step; kOutOfMemory.
Result<ReplayTime> ReplayReads(Policy& policy, const Trace& trace, std::uint64_t row_bytes,
                               const ReadCost& cost);

/// Reads of a trace that is replayed in superbatches.
struct SuperbatchReplay {
  /// Read seconds per step. Excludes the first superbatch, which starts with an empty pool, unless
  /// it is the only one.
  double step_seconds = 0;
  std::uint64_t steps = 0;  ///< steps replayed
  std::uint64_t rows = 0;   ///< rows read in total, including the initial fill of the pool
};

/// Replays a trace in superbatches of `superbatch` steps, 1 <= superbatch <= trace.steps(). Each
/// has a separate policy, created from `options`; policies that support a history are linked by
/// `prior`. Prefill rows that the pool still holds from the previous superbatch are not read. Steps
/// after the last whole superbatch are ignored. `options.history` is not used. Errors:
/// kInvalidArgument, `superbatch` is out of range; any error of MakePolicy.
Result<SuperbatchReplay> ReplaySuperbatches(const Trace& trace, std::size_t superbatch,
                                            const PolicyOptions& options,
                                            Prior prior = Prior::kNone);

}  // namespace internal
}  // namespace rhizome
