#pragma once

#include <cstdint>
#include <memory>

#include "rhizome/cache/direct_neighbors.h"
#include "rhizome/cache/job_report.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The lists of a graph that was opened with TopologyPlace::kDirect, for a job's samplers: read
/// in batches, behind a neighbour cache. It is built here, and kept as long as this is, or dumped
/// to a file and in memory only where it is lent the memory: while a superbatch is sampled (Ginex,
/// where the caches of lists and of features take the same memory in turn).
/// Threads: const functions may be called from many threads, while no other is called. Ownership:
/// `graph` must outlive it.
class ListsOnDisk {
 public:
  /// Memory beside the cache: read buffers, and what a hop that draws `edges` asks for.
  static std::uint64_t WorkingBytes(std::uint64_t edges);

  /// Null where the lists are in memory, for samplers to read them there.
  /// `cache_bytes`: 0, no cache. `dump`: a file to write the cache to, which Lend loads; empty: it
  /// stays in memory. Errors: those of NeighborCache::Build and DirectNeighbors::Open.
  static Result<std::unique_ptr<ListsOnDisk>> Open(const GraphSnapshot& graph, Direction direction,
                                                   std::uint64_t cache_bytes, const Path& dump,
                                                   IoMaker io, const JobControl& control);

  /// With a dump: the cache may be in memory from now on, or must not be any more. Else nothing.
  Status Lend();
  void TakeBack();

  std::shared_ptr<const NeighborSource> source() const { return neighbors_; }
  ListReadsReport report() const;

 private:
  ListsOnDisk(const GraphSnapshot& graph, Direction direction)
      : graph_(graph), direction_(direction) {}
  const GraphSnapshot& graph_;
  const Direction direction_;
  Path dump_;  // empty: none
  std::shared_ptr<DirectNeighbors> neighbors_;
  std::uint64_t cache_bytes_ = 0;
  std::uint64_t cached_lists_ = 0;
  double cache_seconds_ = 0;
  std::uint64_t loads_ = 0;
};

}  // namespace internal
}  // namespace rhizome
