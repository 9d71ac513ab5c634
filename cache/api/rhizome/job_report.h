#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/read_counts.h"

namespace RHIZOME_API rhizome {

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
};

}  // namespace rhizome
