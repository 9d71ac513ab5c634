#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "rhizome/storage/io_queue.h"

namespace rhizome {

/// Takes a sentence that the user should read before a job goes on.
using JobNote = std::function<void(std::string_view)>;

/// What was learnt from the first minibatches to choose the superbatch.
struct FeedProfileReport {
  struct Tried {
    std::uint32_t superbatch = 0;
    std::uint64_t cache_bytes = 0;  ///< that it leaves
    double read_seconds = 0;        ///< of a minibatch, by a replay
  };
  std::uint64_t minibatches = 0;  ///< sampled
  std::uint32_t depth = 0;        ///< reads in flight at most; measured, if anything was tried
  std::vector<Tried> tried;       ///< empty: the superbatch was given, or there were too few
};

/// How neighbour lists were read from disk while training, not while measuring accuracy at the end.
struct ListReadsReport {
  std::uint64_t cache_bytes = 0;   ///< of the neighbour cache
  std::uint64_t cached_lists = 0;  ///< in it
  double cache_seconds = 0;        ///< to build it
  std::uint64_t cache_loads = 0;   ///< from its dump (Overlap::kChangeset)
  std::uint64_t entries = 0;       ///< neighbours looked up
  std::uint64_t lists = 0;         ///< lists that they were looked up in
  std::uint64_t hits = 0;          ///< of those, from the cache
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  double mean_depth = 0;
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
};

}  // namespace rhizome
