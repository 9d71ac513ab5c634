#pragma once

#include <cstdint>

#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"

namespace RHIZOME_API rhizome {

// Counters of reads. A figure is named once, in Each, which calls visit(name, field...) with that
// field of each of the counters that it is given, some of which may be const. Sums, differences,
// checkpoints and JSON are made of it.

/// Rows of one array, read through a FeatureCache.
struct RowReads {
  std::uint64_t rows_requested = 0;  ///< distinct rows of each minibatch
  std::uint64_t pool_hits = 0;       ///< requested rows in the pool when their minibatch began
  std::uint64_t rows_kept = 0;       ///< prefill that the pool held from the previous superbatch
  std::uint64_t rows_read = 0;       ///< misses, and prefill that the pool did not hold
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

  /// Returns the share of the requested rows that are pool_hits. Rows that were prefilled are among
  /// them although they were read: compare policies by rows_read.
  double hit_rate() const {
    return rows_requested == 0
               ? 0.0
               : static_cast<double>(pool_hits) / static_cast<double>(rows_requested);
  }
};

/// Neighbour lists that are on disk.
struct ListReads {
  std::uint64_t entries = 0;         ///< neighbours looked up
  std::uint64_t cached_entries = 0;  ///< of `entries`: served by the NeighborCache
  std::uint64_t lists = 0;           ///< runs of entries of one list
  std::uint64_t hits = 0;            ///< of `lists`: in the NeighborCache, filled before
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  double mean_depth = 0;  ///< reads in flight
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;

  /// The figures that add up.
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
