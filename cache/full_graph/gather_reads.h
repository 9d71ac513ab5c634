#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/blocks/block_plan.h"
#include "cache/full_graph/pass_sequence.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A gather whose reads are to be counted. `blocks` cover all rows, in order; neither sources nor
/// targets may be reordered.
struct CountedGather {
  BlockPlannerOptions planner = {};
  std::vector<Block> blocks = {};
};

/// Counts the chunks that gathers read, as staged by BlockPlanner: for each block, window by
/// window. Gathers over the same lists are counted in one walk over them, with one bit per row and
/// gather; if these bits would exceed `memory_bytes`, there are several walks. Runs on the compute
/// threads. Errors: any error of the sampler; kInterrupted.
Result<std::vector<GatherReads>> CountGathers(const GraphSnapshot& graph,
                                              std::span<const CountedGather> gathers,
                                              std::uint64_t memory_bytes,
                                              const JobControl& control);

/// Counts one gather.
Result<GatherReads> CountGather(const GraphSnapshot& graph, const BlockPlannerOptions& planner,
                                std::span<const Block> blocks, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
