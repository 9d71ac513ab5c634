#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/pass_cost.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct PassPlanOptions {
  PassDrawOptions draw;
  PassShape shape;                      ///< chunks of the array that is read
  std::uint64_t output_chunk_rows = 1;  ///< no block reaches over the end of such a chunk
  std::uint64_t cache_chunks = 0;       ///< of the memory cache
  PolicyKind cache = PolicyKind::kBelady;
  std::vector<LayoutRule> candidates = CandidateLayouts();
};

/// What one pass over all vertices will read, counted before it starts.
struct PassPlan {
  std::uint64_t blocks = 0;  ///< of a pass in place
  std::uint64_t chunks = 0;  ///< of the array that is read

  /// As a pass over a local store reads: the array in place, targets in the order of rows.
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;

  /// As workers read, one for each partition, that have the rows they need in a disk cache of their
  /// own, which holds `worker_chunks` in all and which they fill before. Sums over the workers.
  std::uint64_t worker_chunks = 0;
  std::vector<LayoutCost> layouts;  ///< by candidate; the same for all workers
  std::vector<LayoutRule> chosen;   ///< by worker: each its own
  std::uint64_t chosen_requests = 0;
  std::uint64_t chosen_reads = 0;
};

/// Counts a pass. Memory: the lists of one partition (PassLists) at a time, and 16 bytes a chunk
/// request. On one thread, but for drawing neighbours. Errors: as DrawPassLists;
/// kInvalidArgument, blocks or chunks of no rows.
Result<PassPlan> PlanPass(const GraphSnapshot& graph, const PassPlanOptions& options,
                          const JobControl& control);

}  // namespace internal
}  // namespace rhizome
