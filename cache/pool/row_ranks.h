#pragma once

#include <cstdint>
#include <span>

#include "rhizome/cache/remote_keeper.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Stands for a rank in a table of rows: every rank has the row. That is so of rows that the delta
/// holds.
inline constexpr std::uint16_t kEveryRank = 0xFFFF;

/// Which rank has each row, as one of the ranks sees it. Ownership: the table is borrowed.
struct RowRanks {
  std::span<const std::uint16_t> rank_of;  ///< by row, those of new vertices too
  std::uint32_t rank = 0;                  ///< whose view it is

  bool IsOwn(Row row) const {
    const std::uint16_t owner = rank_of[static_cast<std::size_t>(row)];
    return owner == rank || owner == kEveryRank;
  }
};

/// The ranks of rows, and what a row costs that is read from the rank's own disk, and one from
/// another rank: above 0, in any unit.
struct RowsOverRanks {
  RowRanks ranks;
  double local_cost = 1;
  double remote_cost = 1;

  /// Makes what decides, in a part of the pool, about rows of other ranks. Empty: one schedule
  /// decides about all rows.
  RemoteKeeperMaker keeper = {};
};

}  // namespace internal
}  // namespace rhizome
