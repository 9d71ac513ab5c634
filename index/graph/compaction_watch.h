#pragma once

#include <chrono>
#include <functional>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Compacts a live graph whenever its delta has reached CompactOptions::min_delta, checked every
/// `period`, until `control` is cancelled. `compacted` is called after each compaction. A lack of
/// disk space or memory, or another process that is compacting, ends the attempt; the next check
/// tries again.
///
/// With min_delta = d, an edge is rewritten about 1/d times in all generations until the graph has
/// doubled, instead of once for each update.
/// Threads: as Graph::Compact.
/// Errors: kInterrupted, always at the end; any other error of Graph::Compact.
Status WatchCompaction(Graph& graph, const CompactOptions& options,
                       std::chrono::milliseconds period, const JobControl& control,
                       const std::function<void(const CompactResult&)>& compacted);

}  // namespace internal
}  // namespace rhizome
