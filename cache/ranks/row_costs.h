#pragma once

#include <cstdint>

#include "cache/pool/row_ranks.h"
#include "cache/ranks/rank_plan.h"
#include "storage/array/read_cost.h"

namespace rhizome {
inline namespace internal {

/// Seconds in which a disk reads one row, and in which a link transfers `bytes` bytes.
inline double DiskSeconds(const ReadCost& disk, std::uint64_t row_bytes) {
  return disk.seconds_per_read + disk.SecondsFor(row_bytes);
}
inline double LinkSeconds(const LinkModel& link, std::uint64_t bytes) {
  return 8 * static_cast<double>(bytes) / link.bits_per_second;
}

/// Processor seconds for a row sent from one rank to another, of both ranks together, as schedules
/// assume. Two machines took 1.9 and 3.4 us for rows of 1 KiB over TCP; the slower one took .7, 1.3
/// and 12.6 us for 64, 256 and 4,096 bytes (`rhizome doctor STORE --ranks`).
inline double GivingSeconds(std::uint64_t row_bytes) {
  return 0.4e-6 + static_cast<double>(row_bytes) / 5e8;
}

/// Returns row locations with the costs of a plan: a row of another rank is read from a disk there,
/// sent, and received here. `row_bytes`: as stored.
inline RowsOverRanks WithCosts(const RowRanks& ranks, const ReadCost& disk, const LinkModel& link,
                               std::uint64_t row_bytes) {
  const double local = DiskSeconds(disk, row_bytes);
  const double given = local + GivingSeconds(row_bytes) + LinkSeconds(link, row_bytes);
  return {.ranks = ranks, .local_cost = local, .remote_cost = given};
}

}  // namespace internal
}  // namespace rhizome
