#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Consecutive homes: [first, first + count).
struct HomeRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// The rank that has a home, and the homes that a rank has, where `ranks` divide `homes`.
inline std::uint32_t RankOfHome(std::uint32_t home, std::uint32_t homes, std::uint32_t ranks) {
  return static_cast<std::uint32_t>(std::uint64_t{home} * ranks / homes);
}
inline HomeRange HomesOfRank(std::uint32_t rank, std::uint32_t homes, std::uint32_t ranks) {
  const auto first = [&](std::uint64_t r) {
    return static_cast<std::uint32_t>((r * homes + ranks - 1) / ranks);
  };
  return {first(rank), first(std::uint64_t{rank} + 1) - first(rank)};
}

/// The homes of a graph's rows: those that the store keeps, else its partitions, of which each has
/// the rows that it owns. Rows of vertices without a home, and those added since, are dealt out.
struct RowHomes {
  std::uint32_t count = 1;
  std::string by;                     ///< HomeRuleName, or "partitions" without homes
  std::vector<std::uint16_t> of_row;  ///< by row, below `count`

  /// RankOfHome.
  std::uint32_t RankOf(std::uint32_t home, std::uint32_t ranks) const {
    return RankOfHome(home, count, ranks);
  }

  /// The rank that has each row.
  std::vector<std::uint16_t> RanksOfRows(std::uint32_t ranks) const;

  /// The same of the rows of an array of the graph, for RowRanks: rows that the delta holds are on
  /// every rank (kEveryRank).
  std::vector<std::uint16_t> RanksOfRows(const GraphSnapshot& graph, const ArrayEntry& array,
                                         std::uint32_t ranks) const;

  /// Divides vertices by their homes. Errors: kInvalidArgument, a vertex that the graph has not.
  Result<std::vector<std::vector<VertexId>>> Divide(const GraphSnapshot& graph,
                                                    std::span<const VertexId> vertices) const;
};

/// Errors: kCorruption, an array of homes that has others than it says; those of reading it.
Result<RowHomes> RowHomesOf(const GraphSnapshot& graph);

/// The same without `of_row`, from a store's manifest. Errors: kCorruption, as above.
Result<RowHomes> CountHomes(const Manifest& manifest);

/// Errors: kInvalidArgument, no ranks, or more than there are homes.
Status CheckRanks(std::uint32_t ranks, const RowHomes& homes);

}  // namespace internal
}  // namespace rhizome
