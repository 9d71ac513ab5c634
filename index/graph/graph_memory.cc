#include "index/graph/graph_memory.h"

#include "index/topology/adjacency.h"
#include "index/topology/adjacency_format.h"
#include "storage/io/stored_file.h"
#include "storage/section/block_file.h"
#include "storage/section/section_format.h"

namespace rhizome {
inline namespace internal {

namespace {

/// Measures the partitions for which counts(p) is true.
template <typename Counts>
Result<TopologyBytes> MeasurePartitions(const Store& store, Counts&& counts) {
  TopologyBytes bytes;
  for (std::uint32_t p = 0; p < store.manifest().info.partitions; ++p) {
    if (!counts(p)) continue;
    const Path path = store.GenerationFolder() / PartitionPath(p);
    RHIZOME_ASSIGN_OR_RETURN(const auto file,
                             MissingIsDamage(BlockFile::Open(store.fs(), path, FileKind::kPartition,
                                                             store.id(), /*direct=*/false),
                                             path));
    std::uint64_t lists = 0;
    for (const SectionEntry& entry : file->entries()) {
      const bool is_list = entry.kind == Kind(PartitionSection::kOutNeighbors) ||
                           entry.kind == Kind(PartitionSection::kInNeighbors) ||
                           entry.kind == Kind(PartitionSection::kOutLists) ||
                           entry.kind == Kind(PartitionSection::kInLists);
      if (is_list) lists += entry.element_count * entry.element_bytes;
    }
    bytes.lists += lists;
    bytes.rest += file->size_bytes() - lists;
    bytes.blocks += (file->size_bytes() + kSectionBlockBytes - 1) / kSectionBlockBytes;
  }
  return bytes;
}

}  // namespace

Result<TopologyBytes> MeasureTopology(const Store& store) {
  return MeasurePartitions(store, [](std::uint32_t) { return true; });
}

std::uint64_t OrderAndIdBytes(const Manifest& manifest) {
  std::uint64_t bytes = manifest.info.vertices / 4 + 1;
  for (const FileEntry& file : manifest.files)
    if (file.path.starts_with("order/") || file.path.starts_with("ids/")) bytes += file.size_bytes;
  return bytes;
}

Result<std::uint64_t> HeldByGraph(const GraphSnapshot& graph) {
  RHIZOME_ASSIGN_OR_RETURN(
      const TopologyBytes topology,
      MeasurePartitions(graph.store(), [&](std::uint32_t p) { return graph.is_loaded(p); }));
  const bool lists_are_loaded = graph.partition_count() == 0 || graph.partition(0).resident();
  return OrderAndIdBytes(graph.store().manifest()) + topology.rest +
         (lists_are_loaded ? topology.lists : 0) + graph.delta_size().entries * kBytesOfDeltaEntry +
         graph.delta()->text_bytes();
}

}  // namespace internal
}  // namespace rhizome
