#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/index/partition_input.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// How rows get their homes.
struct HomeOptions {
  std::uint32_t homes = 1;  ///< range [1, kMaxPartitions]
  /// The most rows, and the most seeds, of a home over the mean; at least 1.
  double max_balance = 1.05;
  std::uint64_t seed = 1;
};

/// Divides vertices, so that few edges run between homes: a rank that has the rows of its home, and
/// samples around the seeds of its home, then asks few rows of others. (An edge cut; the parts of
/// PartitionEdges are a vertex cut, whose owners have two to three times the remote rows.) Rows and
/// seeds are both spread within `max_balance` of the mean, rounded up to whole ones.
///
/// Multilevel, our own arrangement of known pieces: clusters by label propagation with a bound on
/// their size (Meyerhenke, Sanders, Schulz, SEA 2014), recursive bisection of the coarsest graph by
/// greedy growing (Karypis, Kumar 1998), Fiduccia-Mattheyses search for any number of parts on the
/// way back; then all of it once more inside the homes that were found (V-cycle).
///
/// Returns the home of each vertex. It depends on the input, the seeds and the options alone. Two
/// scans of the edges. Memory: 8 bytes an edge, some for each vertex, the coarser levels, of which
/// each is smaller, and 4 bytes for each vertex and home. One thread. Errors: kInvalidArgument, an
/// option out of range, a seed that is no vertex or is given twice, 2^32 - 1 vertices or 2^31 edges
/// and more; kInterrupted; kOutOfMemory; those of scanning the edges.
Result<std::vector<PartitionId>> DivideRows(const PartitionInput& input,
                                            std::span<const VertexId> seeds,
                                            const HomeOptions& options, const JobControl& control);

/// Returns a bound on the memory of DivideRows, its input aside, for graphs that coarsen: measured
/// ones take less. Bytes; `edges` as in PartitionInput.
std::uint64_t DivideRowsBytes(std::uint64_t vertices, std::uint64_t edges, std::uint32_t homes);

/// The quality of homes.
struct HomeMetrics {
  double cut_share = 0;     ///< edges between homes, of all edges but loops
  double row_balance = 1;   ///< most rows of a home over the mean
  double seed_balance = 1;  ///< most seeds of a home over the mean; 1 without seeds
  friend bool operator==(const HomeMetrics&, const HomeMetrics&) = default;
};

/// Measures homes, whoever made them. Errors: kInvalidArgument, not one home below `homes` for each
/// vertex, or a seed that is no vertex; those of scanning the edges; kOutOfMemory.
Result<HomeMetrics> MeasureHomes(const PartitionInput& input, std::span<const VertexId> seeds,
                                 std::span<const PartitionId> home_of, std::uint32_t homes);

}  // namespace rhizome
