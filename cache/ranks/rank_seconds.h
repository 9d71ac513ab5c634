#pragma once

#include <cstdint>

#include "cache/ranks/rank_plan.h"
#include "cache/ranks/rank_pool.h"

namespace rhizome {
inline namespace internal {

/// Modelled durations of the parts of distributed training, each in isolation.
/// Threads: any. Ownership: `options` must outlive it.
class RankSeconds {
 public:
  RankSeconds(const RankPlanOptions& options, std::uint64_t row_bytes)
      : options_(options), row_bytes_(row_bytes) {}

  /// Returns the seconds in which a disk reads `rows` rows.
  double Reading(double rows) const;

  /// Returns the seconds to transfer the rows of a rank's sweeps, one sweep after another, while
  /// the rank serves `served` rows to other ranks. Own rows are read while remote rows are
  /// requested, read at their owner, sent and verified, in overlapping requests of several rows
  /// each.
  double Moving(std::uint32_t rank, const RankFetches& fetched, double served) const;

  /// Returns the processor seconds of a rank for the rows of its sweeps and for `served` rows
  /// served to other ranks. The work for a row between ranks is split evenly between requester and
  /// owner.
  double Work(std::uint32_t rank, const RankFetches& fetched, double served) const;

  /// Returns the seconds to sum `bytes` bytes of each rank by a tree of pairs, and to send the sum
  /// back along the tree.
  double Exchange(std::uint32_t ranks, std::uint64_t bytes) const;

 private:
  double Carrying(double rows) const;
  double Giving(double rows) const { return rows * options_.row_seconds / 2; }
  double RoundTrip(double reply_bytes) const;

  const RankPlanOptions& options_;
  const std::uint64_t row_bytes_;
};

}  // namespace internal
}  // namespace rhizome
