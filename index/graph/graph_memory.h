#pragma once

#include <cstdint>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Memory for each entry of a delta (GraphSnapshot::DeltaSize), about.
inline constexpr std::uint64_t kBytesOfDeltaEntry = 100;

/// The sizes of a generation's topology by where it is kept.
struct TopologyBytes {
  std::uint64_t lists = 0;
  std::uint64_t blocks = 0;  ///< of all partition files, as a list cache counts them
  std::uint64_t rest = 0;    ///< always in memory
};

/// Reads section tables only. Errors: kCorruption; kIoError.
Result<TopologyBytes> MeasureTopology(const Store& store);

/// Returns the bytes of order and external ids as on disk, and a quarter byte a vertex for the
/// tables over them.
std::uint64_t OrderAndIdBytes(const Manifest& manifest);

/// Returns the memory that an open graph holds: order, external ids, what is loaded of the
/// partitions, and the delta. Counted from the files, so that two processes that open the same
/// state in the same way come to the same number, whatever their allocators did before. Errors:
/// those of MeasureTopology.
Result<std::uint64_t> HeldByGraph(const GraphSnapshot& graph);

}  // namespace internal
}  // namespace rhizome
