#pragma once

#include <cstdint>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/store.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Approximate memory of an entry of a delta (GraphSnapshot::DeltaSize).
inline constexpr std::uint64_t kBytesOfDeltaEntry = 100;

/// Sizes in bytes of a generation's topology, by where it can be stored.
struct TopologyBytes {
  std::uint64_t lists = 0;
  std::uint64_t blocks = 0;  ///< blocks of all partition files, as a list cache counts them
  std::uint64_t rest = 0;    ///< always in memory
};

/// Reads only section tables.
/// Errors: kCorruption; kIoError.
Result<TopologyBytes> MeasureTopology(const Store& store);

/// Returns the size of order and external ids on disk, plus a quarter byte a vertex for the tables
/// over them.
std::uint64_t OrderAndIdBytes(const Manifest& manifest);

/// Returns the memory that an open graph holds: order, external ids, the loaded part of the
/// partitions, and the delta. It is computed from the files, so that two processes that open the
/// same state with the same options get the same number, independent of their allocators.
/// Errors: as MeasureTopology.
Result<std::uint64_t> HeldByGraph(const GraphSnapshot& graph);

}  // namespace internal
}  // namespace rhizome
