#pragma once

#include <cstdint>
#include <memory>

#include "rhizome/cache/direct_neighbors.h"
#include "rhizome/gnn/entry.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// The in-lists of a graph that was opened with TopologyPlace::kDirect, for a job's samplers: read
/// in batches, behind a neighbour cache that is built here and kept as long as this is. (Ginex
/// loads it anew for each superbatch, because its cache of features takes the same memory in turn;
/// here the next superbatch is sampled while one is used, and each has its own.)
/// Threads: const functions may be called from many threads. Ownership: `graph` must outlive it.
class ListsOnDisk {
 public:
  /// Memory beside the cache: read buffers, and what a hop that draws `edges` asks for.
  static std::uint64_t WorkingBytes(std::uint64_t edges);

  /// `cache_bytes`: 0, no cache. Errors: those of NeighborCache::Build and DirectNeighbors::Open.
  static Result<std::unique_ptr<ListsOnDisk>> Open(const Graph& graph, std::uint64_t cache_bytes,
                                                   IoMaker io, const JobControl& control);

  std::shared_ptr<const NeighborSource> source() const { return neighbors_; }
  ListReadsReport report() const;

 private:
  ListsOnDisk() = default;
  std::shared_ptr<const NeighborCache> cache_;  // or null; shared with neighbors_
  std::shared_ptr<const DirectNeighbors> neighbors_;
  double cache_seconds_ = 0;
};

}  // namespace rhizome
