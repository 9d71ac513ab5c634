#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/lists/direct_neighbors.h"
#include "cache/lists/neighbor_cache.h"
#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/job_report.h"
#include "rhizome/loader.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Reads the neighbour lists of a graph that was opened with TopologyPlace::kDirect, for the
/// samplers of a job. Reads are batched and go through a neighbour cache, one per walked direction,
/// which is built at Open. The cache either remains in memory for the lifetime of this object, or
/// it is dumped to a file and is in memory only between Lend and TakeBack, while a superbatch is
/// sampled. (In Ginex, the caches of lists and of features use the same memory in turn.)
/// Threads: const functions may be called from many threads while no other function is called.
/// Ownership: `graph` must outlive it.
class ListsOnDisk {
 public:
  /// Returns the memory that is needed beside the cache: read buffers, and the draws of the windows
  /// that are read at once. A window has at most `edges` draws.
  static std::uint64_t WorkingBytes(const SamplerOptions& sampling, std::uint64_t edges);

  /// Returns the memory of each further minibatch that is sampled together with this one.
  static std::uint64_t SweptBytes(const Minibatch& minibatch);

  /// Opens the lists. Returns null if they are in memory, where samplers read them directly.
  /// `cache_bytes`: 0 means no cache. `dump`: a file to which the cache is written and from which
  /// Lend loads it; empty: the cache remains in memory. Errors: as NeighborCache::Build and
  /// DirectNeighbors::Open.
  static Result<std::unique_ptr<ListsOnDisk>> Open(const GraphSnapshot& graph, Direction direction,
                                                   std::uint64_t cache_bytes, const Path& dump,
                                                   IoMaker io, const JobControl& control);

  /// With a dump file, Lend loads the cache into memory and TakeBack frees it. Without one, both do
  /// nothing. Errors of Lend: as NeighborCache::Load.
  Status Lend();
  void TakeBack();

  std::shared_ptr<const NeighborSource> source() const { return source_; }

  /// Returns the memory needs of the caches for lists of `direction` (NeighborCache::NeedsOf).
  static NeighborCache::Needs CacheNeeds(const GraphSnapshot& graph, Direction direction);
  ListReadsReport report() const;

 private:
  /// The lists of one direction.
  struct Side {
    Direction direction = Direction::kIn;
    Path dump = {};  // empty: no dump
    std::shared_ptr<DirectNeighbors> neighbors = nullptr;
  };

  explicit ListsOnDisk(const GraphSnapshot& graph) : graph_(graph) {}
  Result<std::shared_ptr<const NeighborCache>> BuildCache(std::uint64_t bytes, Side& side,
                                                          const JobControl& control);

  const GraphSnapshot& graph_;
  std::vector<Side> sides_;  // one direction, or both: out, then in
  std::shared_ptr<const NeighborSource> source_;
  std::uint64_t cache_bytes_ = 0;
  std::uint64_t cached_lists_ = 0;
  double cache_seconds_ = 0;
  std::uint64_t loads_ = 0;
};

}  // namespace internal
}  // namespace rhizome
