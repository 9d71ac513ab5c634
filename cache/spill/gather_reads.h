#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/pass_sequence.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A gathering whose reads are counted: `blocks` are all rows, in order, and neither sources nor
/// targets have an order of their own.
struct CountedGather {
  BlockPlannerOptions planner = {};
  std::vector<Block> blocks = {};
};

/// Counts what gatherings read, as BlockPlanner stages it: the chunks of each block, window by
/// window. Those of the same lists are counted in one walk over them, with a bit for each row and
/// gathering; there are more walks where these would take more than `memory_bytes`. On the compute
/// threads. Errors: those of the sampler; kInterrupted.
Result<std::vector<GatherReads>> CountGathers(const GraphSnapshot& graph,
                                              std::span<const CountedGather> gathers,
                                              std::uint64_t memory_bytes,
                                              const JobControl& control);

/// Counts one.
Result<GatherReads> CountGather(const GraphSnapshot& graph, const BlockPlannerOptions& planner,
                                std::span<const Block> blocks, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
