#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The facts about a job's memory that are known before it starts. Sizes are in bytes unless noted
/// otherwise.
struct MemoryNeeds {
  std::uint64_t held_bytes = 0;     ///< taken already beyond the bare process: topology, labels
  std::uint64_t working_bytes = 0;  ///< minibatches in flight, activations, read buffers
  /// of the superbatch in use and the next one, for each of its minibatches
  std::uint64_t schedule_bytes = 0;
  std::uint64_t cacheable_bytes = 0;    ///< a larger cache is of no use
  std::uint64_t least_cache_bytes = 0;  ///< with a smaller cache the job cannot run
  std::uint64_t minibatches = 1;        ///< number of minibatches of the whole job
  /// number of rows held beside the cache; their bytes are in working_bytes
  std::uint64_t held_rows = 0;

  /// The needs of a neighbour cache (NeighborCache::Needs) where lists are on disk; else 0.
  std::uint64_t neighbor_full_bytes = 0;
  std::uint64_t neighbor_table_bytes = 0;
  std::uint64_t neighbor_build_bytes = 0;  ///< taken before anything but held_bytes
};

/// Values that the caller has fixed, which the plan keeps.
struct FixedMemory {
  std::optional<std::uint64_t> cache_bytes = {};
  std::uint32_t superbatch = 0;  ///< 0: free
  std::optional<std::uint64_t> neighbor_cache_bytes = {};

  /// Whether cache and neighbour cache take the same memory in turn (Overlap::kChangeset). Absent:
  /// PlanMemory chooses.
  std::optional<bool> in_turn = {};
};

/// Estimates the cost of superbatches of a given length with a cache of a given size.
struct SuperbatchTrial {
  std::uint32_t most = 0;  ///< longest superbatch that can be tried; 0: none

  /// Returns seconds a minibatch. The length with the least is chosen, and the shortest of nearly
  /// equal ones.
  std::function<double(std::uint32_t superbatch, std::uint64_t cache_bytes)> seconds = {};
};

struct JobMemoryPlan {
  std::uint64_t cache_bytes = 0;
  std::uint32_t superbatch = 1;            ///< in minibatches
  std::uint64_t neighbor_cache_bytes = 0;  ///< 0: none
  std::uint64_t held_rows = 0;             ///< as needed
  bool in_turn = false;
};

/// Largest cache that is planned unless the caller fixes a size.
inline constexpr std::uint64_t kDefaultCacheBytes = std::uint64_t{1} << 30;

/// Largest neighbour cache that is planned unless the caller fixes a size or turns are taken.
inline constexpr std::uint64_t kDefaultNeighborCacheBytes = std::uint64_t{256} << 20;

/// Divides `limit_bytes` (0: no limit) beyond the bare process among superbatch, cache and
/// neighbour cache. Longer superbatches know more of the future and leave less memory to the cache.
/// A trial decides; without one, and for lengths that it cannot tell, schedules get a share of the
/// memory. Turns are chosen where all lists fit into the neighbour cache's turn but not beside the
/// cache: then no list is read twice, and sampling is over soon. Errors: kOutOfMemory, naming the
/// least that is needed.
Result<JobMemoryPlan> PlanMemory(std::uint64_t limit_bytes, const FixedMemory& fixed,
                                 const MemoryNeeds& needs, const SuperbatchTrial& trial = {});

}  // namespace internal
}  // namespace rhizome
