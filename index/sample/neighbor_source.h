#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"
#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// One drawn entry of a partition's array of neighbours.
struct EntryRef {
  std::uint64_t position = 0;  ///< in the partition's array of the direction that is walked
  LocalId local = 0;           ///< the vertex whose list it is in
  PartitionId partition = 0;
};

/// Where neighbour lists stand for a sampler: in memory as they are, compressed, or on disk behind
/// a cache. Offsets, degrees, types and weights are read from Graph's partitions in every case;
/// only the neighbours themselves come from here; those of edges written since the generation come
/// from the delta's view. Threads: LookUp may be called from many threads
/// at once.
class NeighborSource {
 public:
  virtual ~NeighborSource() = default;

  /// rows[i] = row of the neighbour at entries[i]; both spans are equally long, entries in any
  /// order and possibly repeated. The entries of one list mostly stand together. Errors: those of
  /// reading; the sample that asked fails with them.
  virtual Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const = 0;

  /// True: a sampler asks once for all that is drawn in a hop, which a source on disk can sort and
  /// coalesce. False: chunk by chunk from all its threads, while the entries are in the cache.
  virtual bool wants_whole_hops() const { return false; }
};

}  // namespace rhizome
