#include "index/check/topology_sections.h"

#include <memory>

#include "index/partition/partition_balance.h"
#include "index/topology/adjacency.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/section_struct.h"
#include "index/topology/topology_codec.h"
#include "storage/io/stored_file.h"
#include "storage/section/block_file.h"
#include "storage/section/section_file.h"

namespace rhizome {
namespace {

using S = PartitionSection;

constexpr std::string_view kContainer = "container";  // tables, checksums, padding

std::string_view GroupOf(std::uint32_t kind) {
  switch (static_cast<PartitionSection>(kind)) {
    case S::kOwnedRows:
    case S::kMirrors:
      return "mirrors";
    case S::kOutOffsetBases:
    case S::kOutOffsetSteps:
    case S::kOutOffsetWide:
    case S::kInOffsetBases:
    case S::kInOffsetSteps:
    case S::kInOffsetWide:
      return "offsets";
    case S::kOutNeighbors:
    case S::kOutLists:
    case S::kInNeighbors:
    case S::kInLists:
      return "neighbors";
    case S::kOutListBases:
    case S::kOutListSteps:
    case S::kOutListWide:
    case S::kInListBases:
    case S::kInListSteps:
    case S::kInListWide:
      return "list_offsets";
    case S::kOutTypeLists:
    case S::kInTypeLists:
    case S::kTypeListOffsets:
    case S::kTypes:
    case S::kTypeEnds:
      return "types";
    case S::kInEdges:
      return "edge_ids";
    case S::kWeights:
      return "weights";
    case S::kBoundaryOwned:
    case S::kPartitionSets:
      return "partition_sets";
    case S::kOutDegrees:
    case S::kOutDegreePlaces:
    case S::kOutDegreePatches:
    case S::kInDegrees:
    case S::kInDegreePlaces:
    case S::kInDegreePatches:
      return "degrees";
    case S::kInvalid:
    case S::kHeader:
      break;
  }
  return kContainer;
}

Result<std::unique_ptr<BlockFile>> OpenPartition(const Store& store, std::uint32_t partition) {
  const Path path = store.GenerationFolder() / PartitionPath(partition);
  return MissingIsDamage(
      BlockFile::Open(store.fs(), path, FileKind::kPartition, store.id(), /*direct=*/false), path);
}

}  // namespace

Result<TopologySections> TopologySections::Read(const Store& store) {
  TopologySections sections;
  for (const std::string_view name :
       {"neighbors", "offsets", "list_offsets", "mirrors", "degrees", "partition_sets", "types",
        "edge_ids", "weights", "container"})
    sections.groups_.emplace_back(name, 0);
  sections.codec_ = TopologyCodecName(TopologyCodec::kNone);
  const auto add = [&](std::string_view group, std::uint64_t bytes) {
    for (auto& [name, sum] : sections.groups_)
      if (name == group) sum += bytes;
  };
  for (std::uint32_t p = 0; p < store.manifest().info.partitions; ++p) {
    RHIZOME_ASSIGN_OR_RETURN(const auto file, OpenPartition(store, p));
    std::uint64_t rest = file->size_bytes();
    for (const SectionEntry& entry : file->entries()) {
      const std::uint64_t bytes = entry.element_count * entry.element_bytes;
      add(GroupOf(entry.kind), bytes);
      rest -= bytes;
      if (entry.kind == Kind(S::kOutLists) || entry.kind == Kind(S::kInLists))
        sections.codec_ = TopologyCodecName(TopologyCodec::kEliasFano);
    }
    add(kContainer, rest);
  }
  return sections;
}

std::uint64_t TopologySections::Group(std::string_view name) const {
  for (const auto& [group, bytes] : groups_)
    if (group == name) return bytes;
  return 0;
}

Result<MaxOverMinLoad> MaxOverMinOf(const Store& store) {
  std::vector<std::uint64_t> vertices;
  std::vector<std::uint64_t> edges;
  for (std::uint32_t p = 0; p < store.manifest().info.partitions; ++p) {
    const std::string path = PartitionPath(p);
    RHIZOME_ASSIGN_OR_RETURN(const auto sections, OpenPartition(store, p));
    std::vector<std::uint32_t> columns;
    for (const SectionEntry& entry : sections->entries())
      if (entry.kind != Kind(S::kHeader)) columns.push_back(entry.kind);
    RHIZOME_ASSIGN_OR_RETURN(const SectionFile file,
                             store.LoadSectionFile(path, FileKind::kPartition, columns));
    RHIZOME_ASSIGN_OR_RETURN(const auto headers,
                             ReadStructs<PartitionHeader>(file, Kind(S::kHeader), 1));
    vertices.push_back(headers.front().owned + headers.front().mirrors);
    edges.push_back(headers.front().edges);
  }
  return MaxOverMinLoad{.vertices = MaxOverMin(vertices), .edges = MaxOverMin(edges)};
}

}  // namespace rhizome
