#pragma once

#include <cstdint>

#include "rhizome/cache/rank_plan.h"
#include "rhizome/cache/row_ranks.h"
#include "rhizome/storage/read_cost.h"

namespace rhizome::inline internal {

/// The seconds in which a disk reads one row, and in which a link carries so many bytes.
inline double DiskSeconds(const ReadCost& disk, std::uint64_t row_bytes) {
  return disk.seconds_per_read + disk.SecondsFor(row_bytes);
}
inline double LinkSeconds(const LinkModel& link, std::uint64_t bytes) {
  return 8 * static_cast<double>(bytes) / link.bits_per_second;
}

/// Rows over ranks that cost what a plan says: a row of another rank is read from a disk there, and
/// carried here. `row_bytes`: as stored.
inline RowsOverRanks WithCosts(const RowRanks& ranks, const ReadCost& disk, const LinkModel& link,
                               std::uint64_t row_bytes) {
  const double local = DiskSeconds(disk, row_bytes);
  return {.ranks = ranks, .local_cost = local, .remote_cost = local + LinkSeconds(link, row_bytes)};
}

}  // namespace rhizome::inline internal
