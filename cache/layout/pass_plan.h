#pragma once

#include <cstdint>
#include <vector>

#include "cache/layout/pass_cost.h"
#include "cache/layout/pass_lists.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct WorkerPassOptions {
  PassDrawOptions draw;
  PassShape shape;                 ///< chunk_rows of the array that is read
  std::uint64_t cache_chunks = 0;  ///< size of the memory cache
  PolicyKind cache = PolicyKind::kBelady;
  std::vector<LayoutRule> candidates = CandidateLayouts();
};

/// Reads of one pass over all vertices, summed over workers, in a setup where each partition has a
/// worker with a separate disk cache of the rows that it needs. These caches hold `chunks` chunks
/// in total and are filled beforehand. Inference does not use such workers yet: its reads follow
/// ChooseOrder (cache/blocks/pass_order.h), and so does its plan.
struct WorkerPassPlan {
  std::uint64_t chunks = 0;
  std::vector<LayoutCost> layouts;  ///< by candidate; the same for all workers
  std::vector<LayoutRule> chosen;   ///< by worker
  std::uint64_t chosen_requests = 0;
  std::uint64_t chosen_reads = 0;
};

/// Counts the reads of a pass. Memory: the lists of one partition (PassLists) at a time, and 16
/// bytes per chunk request. Single-threaded, except for sampling neighbours. Errors: any error of
/// DrawPassLists; kInvalidArgument, blocks or chunks have no rows.
Result<WorkerPassPlan> PlanWorkerPass(const GraphSnapshot& graph, const WorkerPassOptions& options,
                                      const JobControl& control);

}  // namespace internal
}  // namespace rhizome
