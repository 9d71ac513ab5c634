#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The features of a vertex, by which its cost in a pass is predicted. The first five are those of
/// ROC (MLSys 2020, Table 2); the others are ours. A run is a maximal set of consecutive
/// neighbours.
enum class RangeFeature : std::uint8_t {
  kVertex,     ///< 1
  kNeighbors,  ///< neighbours
  kRuns,       ///< runs of neighbours
  kListLines,  ///< ⌈length / line⌉, summed over the runs: reads of the list
  kRowLines,   ///< ⌈length x columns / line⌉, summed over the runs: reads of the rows
  kLinked,     ///< 1 if it has neighbours, whose first row is waited for
  kWindows,    ///< neighbours whose row lies in a page that none of the pages_near reads before had
  kMissedRows,  ///< neighbours whose row was not among the near_bytes that were read just before
  kFarRows,     ///< neighbours whose row was not among the far_bytes that were read just before
};
inline constexpr std::size_t kRangeFeatures = 9;
using FeatureVector = std::array<double, kRangeFeatures>;

/// The name of feature `f`, below kRangeFeatures, as reports have it.
const char* RangeFeatureName(std::size_t f);

struct RangeFeatureOptions {
  std::uint64_t columns = 1;  ///< of a row that is gathered
  std::uint64_t line = 16;    ///< floats that memory moves at once: 16 a cache line, 32 a warp
  std::uint64_t page_bytes = 4096;                    ///< of rows whose address is found at once
  std::uint64_t pages_near = 64;                      ///< reads whose pages are still known
  std::uint64_t near_bytes = std::uint64_t{1} << 20;  ///< of rows that a core's cache still holds
  std::uint64_t far_bytes = std::uint64_t{32} << 20;  ///< and the last cache before memory
  std::uint64_t step = 1;  ///< ranges begin at multiples of it, and end there or at the last vertex
};

/// Sums of features over the first vertices of a graph, so that those of any range are a
/// difference. Memory: 72 bytes for each `step` vertices, 8 bytes for a row that is read and for a
/// page of them. Vertices are taken to be computed in order, as they are added: which rows are far
/// depends on it.
class RangeFeatures {
 public:
  explicit RangeFeatures(const RangeFeatureOptions& options) : options_(options) {}

  /// Adds the next vertex, whose neighbours are given in ascending order. One that stands there
  /// several times continues its run.
  void Add(std::span<const std::uint32_t> neighbors);

  std::uint64_t step() const { return options_.step; }
  std::size_t vertices() const { return vertices_; }

  /// Returns the rows that so many bytes hold, and at least one.
  std::uint64_t RowsIn(std::uint64_t bytes) const {
    return std::max<std::uint64_t>(bytes / (options_.columns * sizeof(float)), 1);
  }

  /// Returns the features of vertices [begin, end), begin <= end <= vertices(), which are multiples
  /// of the step or vertices().
  FeatureVector Of(std::size_t begin, std::size_t end) const;

 private:
  RangeFeatureOptions options_;
  std::vector<FeatureVector> sums_ = {FeatureVector{}};  // [⌈vertices / step⌉ + 1]
  std::size_t vertices_ = 0;
  std::vector<std::uint64_t> read_at_;       // [rows] the number of the last read of each, from 1
  std::vector<std::uint64_t> page_read_at_;  // likewise, of pages
  std::uint64_t reads_ = 0;
};

}  // namespace internal
}  // namespace rhizome
