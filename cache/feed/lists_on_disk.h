#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/direct_neighbors.h"
#include "rhizome/cache/job_report.h"
#include "rhizome/cache/neighbor_cache.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Reads the lists of a graph that was opened with TopologyPlace::kDirect, for a job's samplers: in
/// batches, behind a neighbour cache (where both directions are walked, one for each). The cache is
/// built here. It stays in memory as long as this object, or it is dumped to a file and is in
/// memory only between Lend and TakeBack, while a superbatch is sampled (as in Ginex, where the
/// caches of lists and of features take the same memory in turn). Threads: const functions may be
/// called from many threads while no other is called. Ownership: `graph` must outlive it.
class ListsOnDisk {
 public:
  /// Returns the memory beside the cache: read buffers, and the requests of a hop that draws
  /// `edges`.
  static std::uint64_t WorkingBytes(std::uint64_t edges);

  /// Null where the lists are in memory, for samplers to read them there.
  /// `cache_bytes`: 0, no cache. `dump`: a file to write the cache to, which Lend loads; empty: it
  /// stays in memory. Errors: those of NeighborCache::Build and DirectNeighbors::Open.
  static Result<std::unique_ptr<ListsOnDisk>> Open(const GraphSnapshot& graph, Direction direction,
                                                   std::uint64_t cache_bytes, const Path& dump,
                                                   IoMaker io, const JobControl& control);

  /// With a dump, Lend loads the cache into memory and TakeBack frees it. Without one they do
  /// nothing. Errors of Lend: those of NeighborCache::Load.
  Status Lend();
  void TakeBack();

  std::shared_ptr<const NeighborSource> source() const { return source_; }

  /// Returns what the caches of the lists of `direction` need (NeighborCache::NeedsOf).
  static NeighborCache::Needs CacheNeeds(const GraphSnapshot& graph, Direction direction);
  ListReadsReport report() const;

 private:
  /// The lists of one direction.
  struct Side {
    Direction direction = Direction::kIn;
    Path dump = {};  // empty: none
    std::shared_ptr<DirectNeighbors> neighbors = nullptr;
  };

  explicit ListsOnDisk(const GraphSnapshot& graph) : graph_(graph) {}
  Result<std::shared_ptr<const NeighborCache>> BuildCache(std::uint64_t bytes, Side& side,
                                                          const JobControl& control);

  const GraphSnapshot& graph_;
  std::vector<Side> sides_;  // one, or both: out, then in
  std::shared_ptr<const NeighborSource> source_;
  std::uint64_t cache_bytes_ = 0;
  std::uint64_t cached_lists_ = 0;
  double cache_seconds_ = 0;
  std::uint64_t loads_ = 0;
};

}  // namespace internal
}  // namespace rhizome
