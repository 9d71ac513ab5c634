#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "rhizome/storage/io_queue.h"

namespace rhizome {

/// Receives a sentence that the user should read before a job goes on.
using JobNote = std::function<void(std::string_view)>;

/// How neighbour lists were read from disk during training, without the measurement of accuracy at
/// the end.
struct ListReadsReport {
  std::uint64_t cache_bytes = 0;   ///< size of the neighbour cache
  std::uint64_t cached_lists = 0;  ///< lists in it
  double cache_seconds = 0;        ///< time to build it
  std::uint64_t cache_loads = 0;   ///< times it was loaded from its dump (Overlap::kChangeset)
  std::uint64_t entries = 0;       ///< neighbours looked up
  std::uint64_t lists = 0;         ///< lists that they were looked up in
  std::uint64_t hits = 0;          ///< of `lists`: found in the cache
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  double mean_depth = 0;
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
};

}  // namespace rhizome
