#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Consecutive homes [first, first + count).
struct HomeRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Maps homes to ranks, where `ranks` ranks divide `homes` homes: the rank of a home, and the homes
/// of a rank.
inline std::uint32_t RankOfHome(std::uint32_t home, std::uint32_t homes, std::uint32_t ranks) {
  return static_cast<std::uint32_t>(std::uint64_t{home} * ranks / homes);
}
inline HomeRange HomesOfRank(std::uint32_t rank, std::uint32_t homes, std::uint32_t ranks) {
  const auto first = [&](std::uint64_t r) {
    return static_cast<std::uint32_t>((r * homes + ranks - 1) / ranks);
  };
  return {first(rank), first(std::uint64_t{rank} + 1) - first(rank)};
}

/// The home of each row of a graph: a group of rows that are stored on the same rank. Homes are
/// read from the store; without them, each partition is a home of the rows that it owns. Rows of
/// vertices without a home, and rows added since, are distributed round-robin.
struct RowHomes {
  std::uint32_t count = 1;
  std::string by;                     ///< HomeRuleName, or "partitions" if the store has no homes
  std::vector<std::uint16_t> of_row;  ///< by row, less than `count`

  /// Returns the rank of a home (RankOfHome).
  std::uint32_t RankOf(std::uint32_t home, std::uint32_t ranks) const {
    return RankOfHome(home, count, ranks);
  }

  /// Returns the rank of each row.
  std::vector<std::uint16_t> RanksOfRows(std::uint32_t ranks) const;

  /// Returns the rank of each row of an array of the graph, for RowRanks. Rows that the delta holds
  /// are on every rank (kEveryRank).
  std::vector<std::uint16_t> RanksOfRows(const GraphSnapshot& graph, const ArrayEntry& array,
                                         std::uint32_t ranks) const;

  /// Divides vertices by their homes. Errors: kInvalidArgument, a vertex that is not in the graph.
  Result<std::vector<std::vector<VertexId>>> Divide(const GraphSnapshot& graph,
                                                    std::span<const VertexId> vertices) const;
};

/// Reads the home of each row. Errors: kCorruption, the array contains a home out of range; any
/// error of reading the array.
Result<RowHomes> RowHomesOf(const GraphSnapshot& graph);

/// Reads the number of homes from a store's manifest, without `of_row`. Errors: kCorruption, as
/// above.
Result<RowHomes> CountHomes(const Manifest& manifest);

/// Checks the number of ranks. Errors: kInvalidArgument, no ranks, or more ranks than homes.
Status CheckRanks(std::uint32_t ranks, const RowHomes& homes);

}  // namespace internal
}  // namespace rhizome
