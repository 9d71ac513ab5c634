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

/// The processor's seconds of a row that one rank gives another, of both together, as schedules
/// reckon with them. Two machines took 1.9 and 3.4 us for rows of 1 KiB over TCP, the slower one
/// .7, 1.3 and 12.6 for 64, 256 and 4,096 bytes (`rhizome doctor STORE --ranks`).
inline double GivingSeconds(std::uint64_t row_bytes) {
  return 0.4e-6 + static_cast<double>(row_bytes) / 5e8;
}

/// Rows over ranks that cost what a plan says: a row of another rank is read from a disk there,
/// given, and carried here. `row_bytes`: as stored.
inline RowsOverRanks WithCosts(const RowRanks& ranks, const ReadCost& disk, const LinkModel& link,
                               std::uint64_t row_bytes) {
  const double local = DiskSeconds(disk, row_bytes);
  const double given = local + GivingSeconds(row_bytes) + LinkSeconds(link, row_bytes);
  return {.ranks = ranks, .local_cost = local, .remote_cost = given};
}

}  // namespace rhizome::inline internal
