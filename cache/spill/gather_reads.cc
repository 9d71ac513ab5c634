#include "rhizome/cache/gather_reads.h"

#include <utility>

namespace rhizome::inline internal {

Result<GatherReads> CountGather(const GraphSnapshot& graph, const BlockPlannerOptions& options,
                                std::span<const Block> blocks, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(BlockPlanner planner, BlockPlanner::Create(graph, options));
  GatherReads gather;
  for (const Block& block : blocks) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    BlockReads reads;
    RHIZOME_RETURN_IF_ERROR(planner.PlanChunks(block, reads));
    for (const CacheKey key : reads.trace.keys)
      gather.chunks.push_back(static_cast<std::uint32_t>(key));
    gather.block_ends.push_back(gather.chunks.size());
  }
  return gather;
}

}  // namespace rhizome::inline internal
