#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/resource_options.h"

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

/// Receives a sentence that the user should read before a job continues.
using JobNote = std::function<void(std::string_view)>;

/// Time that each stage spent on a minibatch, excluding the computation on it.
struct StageSeconds {
  double sample_seconds = 0;
  double schedule_seconds = 0;
  double switch_seconds = 0;
  double gather_seconds = 0;  ///< reading, and waiting for memory to read into
  double update_seconds = 0;  ///< deciding which rows the pool keeps

  /// Same contract as RowReads::Each.
  template <typename Visit, typename... Seconds>
  static void Each(const Visit& visit, Seconds&... seconds) {
    visit("sample_seconds", seconds.sample_seconds...);
    visit("schedule_seconds", seconds.schedule_seconds...);
    visit("switch_seconds", seconds.switch_seconds...);
    visit("gather_seconds", seconds.gather_seconds...);
    visit("update_seconds", seconds.update_seconds...);
  }
};

/// Time and reads of a minibatch. Costs of a whole superbatch (schedule, prefill) are booked on its
/// first minibatch.
struct MinibatchCosts : StageSeconds, RowReads {
  template <typename Visit, typename... Costs>
  static void Each(const Visit& visit, Costs&... costs) {
    StageSeconds::Each(visit, costs...);
    RowReads::Each(visit, costs...);
  }
  MinibatchCosts& operator+=(const MinibatchCosts& more) {
    Each([](const char*, auto& sum, const auto& figure) { sum += figure; }, *this, more);
    return *this;
  }
};

/// Results of profiling the first minibatches. The superbatch length was chosen from them.
struct FeedProfileReport {
  struct Tried {
    std::uint32_t superbatch = 0;
    std::uint64_t cache_bytes = 0;  ///< left for the cache
    double read_seconds = 0;        ///< per minibatch, estimated by a replay
  };
  std::uint64_t minibatches = 0;  ///< number of minibatches sampled
  std::uint32_t depth = 0;        ///< maximum reads in flight; measured if anything was tried
  /// empty if the superbatch was given or there were too few minibatches
  std::vector<Tried> tried;
};

/// How neighbour lists were read from disk during training, excluding the accuracy measurement at
/// the end.
struct ListReadsReport : ListReads {
  std::uint64_t cache_bytes = 0;   ///< size of the neighbour cache
  std::uint64_t cached_lists = 0;  ///< lists in it
  double cache_seconds = 0;        ///< time to build the cache
  std::uint64_t cache_loads = 0;   ///< number of loads from its dump (Overlap::kChangeset)
  std::uint32_t swept = 1;         ///< minibatches that were sampled together, in one sweep a hop
};

}  // namespace rhizome
