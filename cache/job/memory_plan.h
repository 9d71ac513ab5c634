#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// What is known about a job's memory before it starts, in bytes unless said otherwise.
struct MemoryNeeds {
  std::uint64_t held_bytes = 0;       ///< taken since the bare footprint: topology, labels
  std::uint64_t working_bytes = 0;    ///< minibatches in flight, activations, read buffers
  std::uint64_t schedule_bytes = 0;   ///< of a superbatch that is made and one in use, a minibatch
  std::uint64_t cacheable_bytes = 0;  ///< more cache than this is of no use
  std::uint64_t least_cache_bytes = 0;  ///< with less the job cannot run
  std::uint64_t minibatches = 1;        ///< of the whole job, a count
  std::uint64_t held_rows = 0;  ///< beside the cache, a count; their bytes are working_bytes

  /// Of a neighbour cache, where lists are on disk (NeighborCache::Needs); else 0.
  std::uint64_t neighbor_full_bytes = 0;
  std::uint64_t neighbor_table_bytes = 0;
  std::uint64_t neighbor_build_bytes = 0;  ///< before anything else but `held_bytes` is taken
};

/// What the caller has fixed, and is kept.
struct FixedMemory {
  std::optional<std::uint64_t> cache_bytes = {};
  std::uint32_t superbatch = 0;  ///< 0: free
  std::optional<std::uint64_t> neighbor_cache_bytes = {};

  /// Cache and neighbour cache take the same memory in turn (Overlap::kChangeset). Absent: chosen.
  std::optional<bool> in_turn = {};
};

/// Tells what superbatches of a size would cost with a cache of a size.
struct SuperbatchTrial {
  std::uint32_t most = 0;  ///< longer ones cannot be tried; 0: none

  /// Seconds a minibatch; the least is taken, and of nearly equal ones the shortest.
  std::function<double(std::uint32_t superbatch, std::uint64_t cache_bytes)> seconds = {};
};

struct JobMemoryPlan {
  std::uint64_t cache_bytes = 0;
  std::uint32_t superbatch = 1;            ///< minibatches
  std::uint64_t neighbor_cache_bytes = 0;  ///< 0: none
  std::uint64_t held_rows = 0;             ///< as needed
  bool in_turn = false;
};

/// The most a cache takes unless it is told a size.
inline constexpr std::uint64_t kDefaultCacheBytes = std::uint64_t{1} << 30;

/// The most a neighbour cache takes unless it is told a size.
inline constexpr std::uint64_t kDefaultNeighborCacheBytes = std::uint64_t{256} << 20;

/// Divides `limit_bytes` (0: no limit) beyond the bare footprint into superbatch, cache and
/// neighbour cache: longer superbatches know more of the future, and leave less to the cache. A
/// trial decides, or, without one, and beyond what it can tell, a share of the memory that
/// schedules may take. Turns are chosen
/// where all lists fit in the neighbour cache's turn, but not beside the cache: then no list is
/// read again, and sampling is over soon. Errors: kOutOfMemory, saying how much is needed at least.
Result<JobMemoryPlan> PlanMemory(std::uint64_t limit_bytes, const FixedMemory& fixed,
                                 const MemoryNeeds& needs, const SuperbatchTrial& trial = {});

}  // namespace internal
}  // namespace rhizome
