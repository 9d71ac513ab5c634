#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Features of a vertex, from which its cost in a pass is predicted. The first five are from ROC
/// (MLSys 2020, Table 2); the others are our additions. A run is a maximal sequence of
/// neighbours without gaps.
enum class RangeFeature : std::uint8_t {
  kVertex,      ///< 1
  kNeighbors,   ///< number of neighbours
  kRuns,        ///< number of runs
  kListLines,   ///< ⌈length / line⌉, summed over the runs: reads of the list
  kRowLines,    ///< ⌈length x columns / line⌉, summed over the runs: reads of the rows
  kLinked,      ///< 1 if it has neighbours: latency of the first row
  kWindows,     ///< neighbours in a page that is not among the last pages_near reads
  kMissedRows,  ///< neighbours whose row is not among the last near_bytes read
  kFarRows,     ///< neighbours whose row is not among the last far_bytes read
};
inline constexpr std::size_t kRangeFeatures = 9;
using FeatureVector = std::array<double, kRangeFeatures>;

/// Returns the name of feature `f`, below kRangeFeatures, as used in reports.
const char* RangeFeatureName(std::size_t f);

struct RangeFeatureOptions {
  std::uint64_t columns = 1;        ///< columns of an aggregated row
  std::uint64_t line = 16;          ///< floats per memory transaction: 16 a cache line, 32 a warp
  std::uint64_t page_bytes = 4096;  ///< bytes of rows per translated page
  std::uint64_t pages_near = 64;    ///< reads whose pages are still translated
  std::uint64_t near_bytes = std::uint64_t{1} << 20;  ///< rows in a core's cache, in bytes
  std::uint64_t far_bytes = std::uint64_t{32} << 20;  ///< rows in the last-level cache, in bytes
  std::uint64_t step = 1;  ///< ranges begin and end at multiples of it, or at the last vertex
};

/// Prefix sums of features over the vertices of a graph, so that the features of any range are a
/// difference. Memory: 72 bytes per `step` vertices, 8 bytes per row that is read and per page of
/// rows. Assumes that vertices are computed in the order in which they are added, which determines
/// cache misses.
class RangeFeatures {
 public:
  explicit RangeFeatures(const RangeFeatureOptions& options) : options_(options) {}

  /// Adds the next vertex, with its neighbours in the order in which their rows are read:
  /// ascending, or ascending in each group of a list grouped by relation. A repeated neighbour
  /// continues its run.
  void Add(std::span<const std::uint32_t> neighbors);

  std::uint64_t step() const { return options_.step; }
  std::size_t vertices() const { return vertices_; }

  /// Returns the number of rows in `bytes` bytes, at least one.
  std::uint64_t RowsIn(std::uint64_t bytes) const {
    return std::max<std::uint64_t>(bytes / (options_.columns * sizeof(float)), 1);
  }

  /// Returns the features of vertices [begin, end), begin <= end <= vertices(). Both must be
  /// multiples of the step or equal vertices().
  FeatureVector Of(std::size_t begin, std::size_t end) const;

 private:
  RangeFeatureOptions options_;
  std::vector<FeatureVector> sums_ = {FeatureVector{}};  // [⌈vertices / step⌉ + 1]
  std::size_t vertices_ = 0;
  std::vector<std::uint64_t> read_at_;       // [rows] number of the last read of each row, from 1
  std::vector<std::uint64_t> page_read_at_;  // as above, by page
  std::uint64_t reads_ = 0;
};

}  // namespace internal
}  // namespace rhizome
