#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/pass_cost.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

struct PassPlanOptions {
  PassDrawOptions draw;
  PassShape shape;                      ///< chunk_rows is that of the array that is read
  std::uint64_t output_chunk_rows = 1;  ///< no block crosses the end of an output chunk
  std::uint64_t cache_chunks = 0;       ///< size of the memory cache
  PolicyKind cache = PolicyKind::kBelady;
  std::vector<LayoutRule> candidates = CandidateLayouts();
};

/// The reads of one pass over all vertices, counted before it starts.
struct PassPlan {
  std::uint64_t blocks = 0;  ///< blocks of a pass in place
  std::uint64_t chunks = 0;  ///< chunks of the array that is read

  /// A pass over a local store: the array is read in place, targets in the order of rows.
  std::uint64_t requests = 0;
  std::uint64_t reads = 0;

  /// A pass by one worker for each partition, each of which first copies the rows that it needs
  /// into a disk cache of its own. Sums over the workers; the disk caches hold `worker_chunks` in
  /// all.
  std::uint64_t worker_chunks = 0;
  std::vector<LayoutCost> layouts;  ///< by candidate; the same for all workers
  std::vector<LayoutRule> chosen;   ///< by worker
  std::uint64_t chosen_requests = 0;
  std::uint64_t chosen_reads = 0;
};

/// Counts a pass. Memory: the lists of one partition (PassLists) at a time, and 16 bytes a chunk
/// request. Runs on one thread, except for drawing neighbours. Errors: as DrawPassLists;
/// kInvalidArgument, blocks or chunks of no rows.
Result<PassPlan> PlanPass(const GraphSnapshot& graph, const PassPlanOptions& options,
                          const JobControl& control);

}  // namespace rhizome
