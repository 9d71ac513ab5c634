#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rhizome::inline internal {

/// The features of a vertex, by which its cost in a pass is predicted. The first five are those of
/// ROC (MLSys 2020, Table 2); the last is ours. A run is a maximal set of consecutive neighbours.
enum class RangeFeature : std::uint8_t {
  kVertex,     ///< 1
  kNeighbors,  ///< neighbours
  kRuns,       ///< runs of neighbours
  kListLines,  ///< ⌈length / line⌉, summed over the runs: reads of the list
  kRowLines,   ///< ⌈length x columns / line⌉, summed over the runs: reads of the rows
  kFarRows,    ///< neighbours whose row was not among those that were read just before
};
inline constexpr std::size_t kRangeFeatures = 6;
using FeatureVector = std::array<double, kRangeFeatures>;

struct RangeFeatureOptions {
  std::uint64_t columns = 1;  ///< of a row that is gathered
  std::uint64_t line = 16;    ///< floats that memory moves at once: 16 a cache line, 32 a warp
  std::uint64_t near_bytes = std::uint64_t{1} << 20;  ///< of rows that a cache still holds
};

/// Sums of features over the first vertices of a graph, so that those of any range are a
/// difference. Memory: 56 bytes a vertex. Vertices are
/// taken to be computed in order, as they are added: which rows are far depends on it.
class RangeFeatures {
 public:
  explicit RangeFeatures(const RangeFeatureOptions& options) : options_(options) {}

  /// Adds the next vertex, whose neighbours are given in ascending order. One that stands there
  /// several times continues its run.
  void Add(std::span<const std::uint32_t> neighbors);

  std::size_t vertices() const { return sums_.size() - 1; }

  /// Returns so many reads of rows as are near_bytes, and at least one.
  std::uint64_t near_reads() const {
    return std::max<std::uint64_t>(options_.near_bytes / (options_.columns * sizeof(float)), 1);
  }

  /// Returns the features of vertices [begin, end), begin <= end <= vertices().
  FeatureVector Of(std::size_t begin, std::size_t end) const;

 private:
  RangeFeatureOptions options_;
  std::vector<FeatureVector> sums_ = {FeatureVector{}};  // [vertices + 1]
  std::vector<std::uint64_t> read_at_;  // [rows] the number of the last read of each, from 1
  std::uint64_t reads_ = 0;
};

}  // namespace rhizome::inline internal
