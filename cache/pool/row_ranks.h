#pragma once

#include <cstdint>
#include <span>

#include "cache/pool/remote_cache_policy.h"
#include "rhizome/export.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Rank value that means every rank has the row. Used for rows that the delta holds.
inline constexpr std::uint16_t kEveryRank = 0xFFFF;

/// Location of each row by rank, from the view of one rank. Ownership: the table is borrowed.
struct RowRanks {
  std::span<const std::uint16_t> rank_of;  ///< by row, including rows of new vertices
  std::uint32_t rank = 0;                  ///< rank of the viewer

  bool IsOwn(Row row) const {
    const std::uint16_t owner = rank_of[static_cast<std::size_t>(row)];
    return owner == rank || owner == kEveryRank;
  }
};

/// Locations of rows, and the costs of reading a row from the local disk and from another rank.
/// Costs are positive, in any unit.
struct RowsOverRanks {
  RowRanks ranks;
  double local_cost = 1;
  double remote_cost = 1;

  /// Creates a remote cache policy, which manages rows of other ranks in a part of the pool. Empty:
  /// one schedule manages all rows.
  RemoteCachePolicyFactory keeper = {};
};

}  // namespace internal
}  // namespace rhizome
