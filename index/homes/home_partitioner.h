#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/partition/partition_input.h"
#include "rhizome/export.h"
#include "rhizome/ingest.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Options of DivideRows.
struct HomeOptions {
  std::uint32_t homes = 1;  ///< range [1, kMaxPartitions]
  /// Maximum rows, and maximum seeds, of a home over the mean; at least 1.
  double max_balance = 1.05;
  std::uint64_t seed = 1;
};

/// Partitions vertices so that few edges run between homes. A rank that holds the rows of its home,
/// and samples around the seeds of its home, then requests few rows from other ranks. (This is an
/// edge cut. PartitionEdges computes a vertex cut, whose owners would need two to three times as
/// many remote rows.) Rows and seeds are both balanced within `max_balance` of the mean, rounded
/// up.
///
/// The method is multilevel, our own arrangement of known parts: clusters by label propagation with
/// a bound on their size (Meyerhenke, Sanders, Schulz, SEA 2014), recursive bisection of the
/// coarsest graph by greedy growing (Karypis, Kumar 1998), Fiduccia-Mattheyses search for any
/// number of parts during uncoarsening; then all steps again within the homes found so far
/// (V-cycles).
///
/// Returns the home of each vertex. The result depends only on the input, the seeds and the
/// options. It scans the edges twice and uses one thread.
/// Memory: 8 bytes an edge, some for each vertex, the coarser levels, each smaller than the one
/// before, and 4 bytes for each vertex and home.
/// Errors: kInvalidArgument, an option out of range, a seed that is not a vertex or is repeated, at
/// least 2^32 - 1 vertices or 2^31 edges; kInterrupted; kOutOfMemory; any error of scanning the
/// edges.
Result<std::vector<PartitionId>> DivideRows(const PartitionInput& input,
                                            std::span<const VertexId> seeds,
                                            const HomeOptions& options, const JobControl& control);

/// Returns a bound in bytes on the memory of DivideRows, without its input, for graphs that
/// coarsen; measured graphs need less. `edges` is the edge count of the PartitionInput.
std::uint64_t DivideRowsBytes(std::uint64_t vertices, std::uint64_t edges, std::uint32_t homes);

/// Measures homes from any source.
/// Errors: kInvalidArgument, not one home below `homes` for each vertex, or a seed that is not a
/// vertex; any error of scanning the edges; kOutOfMemory.
Result<HomeMetrics> MeasureHomes(const PartitionInput& input, std::span<const VertexId> seeds,
                                 std::span<const PartitionId> home_of, std::uint32_t homes);

}  // namespace rhizome
