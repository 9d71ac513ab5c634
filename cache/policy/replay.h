#pragma once

#include <cstdint>

#include "rhizome/cache/policies.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/prior.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/read_cost.h"

namespace RHIZOME_API rhizome {

/// The cost of a trace's reads on a disk with a given ReadCost. Keys are rows of equal size, in
/// the order in which they lie on disk.
struct ReplayTime {
  double seconds = 0;
  std::uint64_t rows = 0;   ///< rows read
  std::uint64_t reads = 0;  ///< reads issued
  std::uint64_t bytes = 0;  ///< bytes of those reads, gaps included
};

/// Replays a whole trace and adds up what its reads take, each step's in one coalesced sweep, as
/// the prefill. Errors: those of CheckTrace and of Policy::Step; kOutOfMemory.
Result<ReplayTime> ReplayReads(Policy& policy, const Trace& trace, std::uint64_t row_bytes,
                               const ReadCost& cost);

/// The reads of a trace in superbatches.
struct SuperbatchReplay {
  /// Seconds of the reads of a step, without the first superbatch, which finds the pool empty,
  /// unless there is no second.
  double step_seconds = 0;
  std::uint64_t steps = 0;  ///< replayed
  std::uint64_t rows = 0;   ///< read in all of them, to fill the pool at first included
};

/// Replays a trace in superbatches of `superbatch` steps, 1 <= superbatch <= trace.steps(), each
/// with a policy of its own as `options` say, and with `prior` between them where such policies
/// take one: of its prefill only what the pool does not hold of the superbatch before is read.
/// Steps behind the last whole one are left out. `options.history` is not used. Errors:
/// kInvalidArgument, `superbatch` is out of that range; those of MakePolicy.
Result<SuperbatchReplay> ReplaySuperbatches(const Trace& trace, std::size_t superbatch,
                                            const PolicyOptions& options,
                                            Prior prior = Prior::kNone);

}  // namespace rhizome
