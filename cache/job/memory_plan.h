#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Memory needs of a job that are known before it starts. Sizes are in bytes unless noted
/// otherwise.
struct MemoryNeeds {
  std::uint64_t held_bytes = 0;     ///< in use already, beyond the bare process: topology, labels
  std::uint64_t working_bytes = 0;  ///< minibatches in flight, activations, read buffers
  /// for each minibatch of the current superbatch and of the next one
  std::uint64_t schedule_bytes = 0;
  std::uint64_t cacheable_bytes = 0;  ///< a larger cache is useless
  std::uint64_t min_cache_bytes = 0;  ///< the job cannot run with a smaller cache
  std::uint64_t minibatches = 1;      ///< number of minibatches of the whole job
  /// number of rows held outside the cache; their bytes are in working_bytes
  std::uint64_t held_rows = 0;

  /// Needs of a neighbour cache (NeighborCache::Needs) if lists are on disk; else 0.
  std::uint64_t neighbor_full_bytes = 0;
  std::uint64_t neighbor_table_bytes = 0;
  std::uint64_t neighbor_build_bytes = 0;  ///< allocated before anything except held_bytes

  /// If lists are on disk: for each further minibatch that is sampled together with others; else 0.
  std::uint64_t swept_bytes = 0;
};

/// Values fixed by the caller. The plan keeps them.
struct FixedMemory {
  std::optional<std::uint64_t> cache_bytes = {};
  std::uint32_t superbatch = 0;  ///< 0: not fixed
  std::optional<std::uint64_t> neighbor_cache_bytes = {};

  /// Whether the cache and the neighbour cache use the same memory one after the other
  /// (Overlap::kChangeset). If absent, PlanMemory chooses.
  std::optional<bool> in_turn = {};
};

/// Estimates the cost of superbatches of a given length with a cache of a given size.
struct SuperbatchTrial {
  std::uint32_t most = 0;  ///< longest superbatch that can be tried; 0: none

  /// Returns seconds per minibatch. The length with the minimum is chosen; among nearly equal ones,
  /// the shortest.
  std::function<double(std::uint32_t superbatch, std::uint64_t cache_bytes)> seconds = {};
};

struct JobMemoryPlan {
  std::uint64_t cache_bytes = 0;
  std::uint32_t superbatch = 1;            ///< in minibatches
  std::uint64_t neighbor_cache_bytes = 0;  ///< 0: none
  std::uint64_t held_rows = 0;             ///< copied from MemoryNeeds
  std::uint32_t swept = 1;                 ///< minibatches that are sampled together
  bool in_turn = false;
};

/// Largest cache size that is planned unless the caller fixes one.
inline constexpr std::uint64_t kDefaultCacheBytes = std::uint64_t{1} << 30;

/// Largest neighbour cache of all lists that is planned unless the caller fixes a size or the
/// caches share memory.
inline constexpr std::uint64_t kDefaultNeighborCacheBytes = std::uint64_t{256} << 20;

/// Most memory that minibatches use while they are sampled together, if there is no limit.
inline constexpr std::uint64_t kDefaultSweptBytes = std::uint64_t{256} << 20;

/// Divides `limit_bytes` (0: no limit), counted beyond the bare process, among superbatch
/// schedules, cache and neighbour cache. Longer superbatches know more of the future and leave less
/// memory for the cache. The trial decides between lengths; without a trial, or for lengths that it
/// cannot estimate, schedules get a fixed share of the memory. The two caches share memory
/// (in_turn) if all lists fit only that way: then no list is read twice, and sampling finishes
/// early. Errors: kOutOfMemory, naming the minimum that is needed.
Result<JobMemoryPlan> PlanMemory(std::uint64_t limit_bytes, const FixedMemory& fixed,
                                 const MemoryNeeds& needs, const SuperbatchTrial& trial = {});

}  // namespace internal
}  // namespace rhizome
