#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/result.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// One drawn entry of a partition's array of neighbours. A sampler that traverses both directions
/// of a graph that is not symmetric requests entries of out-lists with their partition, and entries
/// of in-lists with their partition + Graph::partition_count() + 1.
struct EntryRef {
  std::uint64_t position = 0;  ///< in the partition's array of the sampled direction
  LocalId local = 0;           ///< the vertex whose list it is in
  PartitionId partition = 0;
};

/// The source of neighbours for a sampler: lists in memory, plain or compressed, or on disk behind
/// a cache. Offsets, degrees, types and weights always come from Graph's partitions; a source
/// provides only the neighbours. Neighbours of the delta's edges come from its view.
/// Threads: LookUp may be called from many threads at once.
class NeighborSource {
 public:
  virtual ~NeighborSource() = default;

  /// Sets rows[i] to the row of the neighbour at entries[i]. Both spans have the same length.
  /// Entries may be in any order, and repeated, but entries of one list are mostly adjacent.
  /// Errors: any error of reading; the sample then fails with it.
  virtual Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const = 0;

  /// If true, a sampler calls LookUp once for all entries of a hop, which a source on disk can sort
  /// and coalesce. If false, it calls LookUp chunk by chunk from all its threads, while the entries
  /// are in the processor's cache.
  virtual bool wants_whole_hops() const { return false; }
};

}  // namespace rhizome
