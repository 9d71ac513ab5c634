#pragma once

#include <cstdint>

#include "index/generation/edge_spool.h"
#include "index/generation/spill.h"
#include "rhizome/ingest.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// Reads the edge files and chooses the edges that HoldOutOptions::By::kTime holds out. Pairs of
/// vertices are in order of the latest time of their edges, pairs of one time in a random order.
/// The last pairs that have at most the share of test are held out for test, those before them for
/// validation. Returns, in order, the numbers of the edges' lines or elements in all files (`src`)
/// and their sets (`dst`, EdgeSplit).
///
/// Memory: memory_bytes, which is bounded below by a few MiB: edges are sorted in `space`.
/// Errors: as Ingest.
Result<EdgeSpool> ChooseLatest(FileSystem& fs, const InputPlan& plan, SpillSpace& space,
                               std::uint64_t memory_bytes, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
