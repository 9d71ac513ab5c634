#pragma once

#include <cstdint>

#include "rhizome/export.h"
#include "rhizome/io_queue.h"

namespace RHIZOME_API rhizome {

// Counters of reads. Each lists the fields once: it calls visit(name, field...) with that field of
// every counter object that is passed; some of them may be const. Sums, differences, checkpoints
// and JSON are based on it.

/// Reads of rows of one array through a FeatureCache.
struct RowReads {
  std::uint64_t rows_requested = 0;  ///< distinct rows of each minibatch
  std::uint64_t pool_hits = 0;       ///< requested rows that were in the pool when their minibatch
                                     ///< began
  std::uint64_t rows_kept = 0;       ///< prefill that the pool held from the previous superbatch
  std::uint64_t rows_read = 0;       ///< misses, and prefill that was not in the pool
  std::uint64_t bytes_read = 0;
  std::uint64_t reads_issued = 0;

  template <typename Visit, typename... Reads>
  static void Each(const Visit& visit, Reads&... reads) {
    visit("rows_requested", reads.rows_requested...);
    visit("rows_read", reads.rows_read...);
    visit("pool_hits", reads.pool_hits...);
    visit("rows_kept", reads.rows_kept...);
    visit("bytes_read", reads.bytes_read...);
    visit("reads_issued", reads.reads_issued...);
  }

  RowReads& operator+=(const RowReads& more) {
    Each([](const char*, auto& sum, const auto& figure) { sum += figure; }, *this, more);
    return *this;
  }
  RowReads& operator-=(const RowReads& less) {
    Each([](const char*, auto& rest, const auto& figure) { rest -= figure; }, *this, less);
    return *this;
  }

  /// Returns the share of requested rows that are pool_hits. Prefilled rows are included although
  /// they were read: compare policies by rows_read instead.
  double hit_rate() const {
    return rows_requested == 0
               ? 0.0
               : static_cast<double>(pool_hits) / static_cast<double>(rows_requested);
  }
};

/// Reads of neighbour lists on disk.
struct ListReads {
  std::uint64_t entries = 0;         ///< neighbours looked up
  std::uint64_t cached_entries = 0;  ///< part of `entries` that the NeighborCache served
  std::uint64_t lists = 0;           ///< runs of entries of one list
  std::uint64_t hits = 0;            ///< part of `lists` found in the NeighborCache, which is
                                     ///< filled before
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  double mean_depth = 0;  ///< mean number of reads in flight
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;

  /// Visits the fields that are additive.
  template <typename Visit, typename... Reads>
  static void Each(const Visit& visit, Reads&... reads) {
    visit("entries", reads.entries...);
    visit("cached_entries", reads.cached_entries...);
    visit("lists", reads.lists...);
    visit("hits", reads.hits...);
    visit("reads", reads.reads...);
    visit("bytes_read", reads.bytes_read...);
  }
};

}  // namespace rhizome
