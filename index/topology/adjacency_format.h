#pragma once

#include <cstdint>

#include "index/topology/blocked_offsets.h"
#include "index/topology/patched_column.h"

namespace rhizome {
inline namespace internal {

/// The sections of a partition file; see storage/FORMAT.md, "Partition file". These numbers are
/// stored on disk: never renumber, only append. "n" is the number of local vertices, "m" the number
/// of edges, "b" the number of owned boundary vertices. Where no width is given, an element has the
/// smallest of 1, 2, 4 and 8 bytes that holds the largest element. An array of offsets takes three
/// sections (BlockedOffsets), as does an array of degrees (PatchedColumn).
enum class PartitionSection : std::uint32_t {
  kInvalid = 0,
  kHeader = 1,          // one PartitionHeader
  kOwnedRows = 2,       // not grouped: [owned], ascending
  kMirrors = 3,         // [mirrors] rows, ascending, none of them owned
  kOutOffsetBases = 4,  // offsets [n + 1] of entries
  kOutOffsetSteps = 5,
  kOutOffsetWide = 6,
  kOutNeighbors = 7,  // plain: [m] uint32 local ids
  kOutListBases = 8,  // compressed: offsets [n + 1] of bytes in kOutLists
  kOutListSteps = 9,
  kOutListWide = 10,
  kOutLists = 11,       // compressed: the lists, one after another
  kOutTypeLists = 12,   // [n] numbers of type lists; only with several edge types
  kInOffsetBases = 13,  // kInOffsetBases to kInTypeLists: the same sections for in-lists
  kInOffsetSteps = 14,
  kInOffsetWide = 15,
  kInNeighbors = 16,
  kInListBases = 17,
  kInListSteps = 18,
  kInListWide = 19,
  kInLists = 20,
  kInTypeLists = 21,
  kTypeListOffsets = 22,  // [type lists + 1] into kTypes and kTypeEnds; with several edge types
  kTypes = 23,            // [entries], ascending within a type list
  kTypeEnds = 24,         // [entries] counts accumulated within a type list
  kInEdges = 25,          // [m] edge ids; only with both directions, and weights or edge attributes
  kWeights = 26,          // [m] float32, by edge id
  kBoundaryOwned = 27,    // bit v % 64 of word v / 64: owned vertex v is a boundary vertex
  // [b + mirrors] global degree minus list length; only for stored directions
  kOutDegrees = 28,
  kOutDegreePlaces = 29,
  kOutDegreePatches = 30,
  kInDegrees = 31,
  kInDegreePlaces = 32,
  kInDegreePatches = 33,
  kPartitionSets = 34,  // [(b + mirrors) * ceil(partitions / 8)] bytes
};

constexpr std::uint32_t Kind(PartitionSection section) {
  return static_cast<std::uint32_t>(section);
}

/// The section kinds of one direction, and its name in messages.
struct SideKinds {
  const char* name;
  OffsetKinds offsets;
  PartitionSection neighbors;
  OffsetKinds list_offsets;
  PartitionSection lists;
  PartitionSection type_lists;
  PatchedKinds degrees;
};
inline constexpr SideKinds kOutKinds{
    "out",
    {Kind(PartitionSection::kOutOffsetBases), Kind(PartitionSection::kOutOffsetSteps),
     Kind(PartitionSection::kOutOffsetWide)},
    PartitionSection::kOutNeighbors,
    {Kind(PartitionSection::kOutListBases), Kind(PartitionSection::kOutListSteps),
     Kind(PartitionSection::kOutListWide)},
    PartitionSection::kOutLists,
    PartitionSection::kOutTypeLists,
    {Kind(PartitionSection::kOutDegrees), Kind(PartitionSection::kOutDegreePlaces),
     Kind(PartitionSection::kOutDegreePatches)}};
inline constexpr SideKinds kInKinds{
    "in",
    {Kind(PartitionSection::kInOffsetBases), Kind(PartitionSection::kInOffsetSteps),
     Kind(PartitionSection::kInOffsetWide)},
    PartitionSection::kInNeighbors,
    {Kind(PartitionSection::kInListBases), Kind(PartitionSection::kInListSteps),
     Kind(PartitionSection::kInListWide)},
    PartitionSection::kInLists,
    PartitionSection::kInTypeLists,
    {Kind(PartitionSection::kInDegrees), Kind(PartitionSection::kInDegreePlaces),
     Kind(PartitionSection::kInDegreePatches)}};

inline constexpr std::uint32_t kPartitionOut = 1;        // out-lists are here
inline constexpr std::uint32_t kPartitionIn = 2;         // in-lists are here
inline constexpr std::uint32_t kPartitionSymmetric = 4;  // the out-lists also serve as in-lists
inline constexpr std::uint32_t kPartitionGrouped = 8;    // owned rows are contiguous
inline constexpr std::uint32_t kPartitionWeighted = 16;
inline constexpr std::uint32_t kPartitionCompressed = 32;  // lists are compressed
inline constexpr std::uint32_t kPartitionAttributed = 64;  // the edges have attributes
inline constexpr std::uint32_t kPartitionFlags = 127;      // mask of all flags

/// Little-endian, like every number on disk.
struct PartitionHeader {
  std::uint64_t vertices;   // of the whole graph
  std::uint64_t edges;      // of this partition
  std::uint64_t owned;      // local ids [0, owned)
  std::uint64_t mirrors;    // local ids [owned, owned + mirrors)
  std::uint64_t first_row;  // grouped: row of local id 0; else 0
  std::uint64_t boundary_owned;
  std::uint32_t partition;
  std::uint32_t partitions;
  std::uint32_t edge_types;
  std::uint32_t flags;
};
static_assert(sizeof(PartitionHeader) == 64, "on-disk layout");

}  // namespace internal
}  // namespace rhizome
