#pragma once

#include <cstdint>

#include "rhizome/cache/rank_plan.h"
#include "rhizome/cache/rank_pool.h"

namespace rhizome::inline internal {

/// The seconds that the parts of a training over ranks take, each by itself, as a plan models them.
/// Threads: any. Ownership: `options` must outlive it.
class RankSeconds {
 public:
  RankSeconds(const RankPlanOptions& options, std::uint64_t row_bytes)
      : options_(options), row_bytes_(row_bytes) {}

  /// Returns the seconds in which a disk reads so many rows.
  double Reading(double rows) const;

  /// Returns the seconds in which the rows of a rank's sweeps come, one sweep after another, while
  /// it serves so many to others: its own are read while those of others are asked for, read there,
  /// carried and checked here, in requests of some rows each, which overlap.
  double Moving(std::uint32_t rank, const RankFetches& fetched, double served) const;

  /// Returns the processor's seconds of a rank for the rows of its sweeps, and so many that it
  /// gives to others: half of a row that one rank gives another is its asker's, half its owner's.
  double Work(std::uint32_t rank, const RankFetches& fetched, double served) const;

  /// Returns the seconds in which so many bytes of each rank are added up at one, two ranks at a
  /// time, and the sum goes the same ways back.
  double Exchange(std::uint32_t ranks, std::uint64_t bytes) const;

 private:
  double Carrying(double rows) const;
  double Giving(double rows) const { return rows * options_.row_seconds / 2; }
  double RoundTrip(double reply_bytes) const;

  const RankPlanOptions& options_;
  const std::uint64_t row_bytes_;
};

}  // namespace rhizome::inline internal
