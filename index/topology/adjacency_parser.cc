#include "index/topology/adjacency_parser.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "index/topology/section_struct.h"

namespace rhizome {
inline namespace internal {
// Parses a partition file. Later steps rely on the checks of earlier ones:
// 1. header and flags: they agree with the manifest and the order, and with the sections present;
// 2. rows of owned vertices and mirrors;
// 3. offsets of each stored direction, then the type lists of both;
// 4. the lists themselves, if they are resident, noting which vertices have an edge here;
// 5. weights and the edge ids of in-entries;
// 6. boundary vertices, their degrees and partition sets.
Status AdjacencyParser::Run(std::uint32_t partition, std::uint32_t partitions,
                            std::uint32_t edge_types) {
  RHIZOME_RETURN_IF_ERROR(ReadHeader(partition, partitions, edge_types));
  RHIZOME_RETURN_IF_ERROR(CheckFlags());
  TakeHeader();
  RHIZOME_RETURN_IF_ERROR(ReadRows());
  if (keeps(kPartitionOut)) {
    RHIZOME_RETURN_IF_ERROR(ReadSide(kOutKinds, adjacency_.out_));
  }
  if (keeps(kPartitionIn)) {
    RHIZOME_RETURN_IF_ERROR(ReadSide(kInKinds, adjacency_.in_));
  }
  RHIZOME_RETURN_IF_ERROR(ReadTypeLists());
  if (adjacency_.resident_) touched_ = RankBitmap(vertices());
  if (keeps(kPartitionOut)) {
    RHIZOME_RETURN_IF_ERROR(CheckLists(kOutKinds, adjacency_.out_));
  }
  if (keeps(kPartitionIn)) {
    RHIZOME_RETURN_IF_ERROR(CheckLists(kInKinds, adjacency_.in_));
  }
  RHIZOME_RETURN_IF_ERROR(ReadWeights());
  if (keeps_in_edges()) {
    RHIZOME_RETURN_IF_ERROR(ReadInEdges());
  }
  return ReadBoundary();
}

Status AdjacencyParser::RunHeader(std::uint32_t partition, std::uint32_t partitions,
                                  std::uint32_t edge_types, bool resident) {
  RHIZOME_RETURN_IF_ERROR(ReadHeader(partition, partitions, edge_types));
  RHIZOME_RETURN_IF_ERROR(CheckFlags());
  TakeHeader();
  adjacency_.loaded_ = false;
  adjacency_.resident_ = resident;
  return Status::Ok();
}

Status AdjacencyParser::ReadHeader(std::uint32_t partition, std::uint32_t partitions,
                                   std::uint32_t edge_types) {
  RHIZOME_ASSIGN_OR_RETURN(
      const auto headers,
      ReadStructs<PartitionHeader>(adjacency_.file_, Kind(PartitionSection::kHeader), 1));
  header_ = headers.front();
  if (header_.partition != partition || header_.partitions != partitions)
    return Corrupt("header: partition {} of {}, but {} of {} was expected", header_.partition,
                   header_.partitions, partition, partitions);
  if (header_.edge_types != edge_types)
    return Corrupt("header: {} edge types, but the manifest has {}", header_.edge_types,
                   edge_types);
  if (header_.vertices != order_.size())
    return Corrupt("header: {} vertices, but the order has {}", header_.vertices, order_.size());
  if (header_.owned != order_.owned_count(partition))
    return Corrupt("header: {} owned vertices, but the order has {}", header_.owned,
                   order_.owned_count(partition));
  if (header_.mirrors > header_.vertices - header_.owned || vertices() >= UINT32_MAX)
    return Corrupt("header: {} mirrors are too many", header_.mirrors);
  if (header_.boundary_owned > header_.owned)
    return Corrupt("header: more boundary vertices than owned ones");
  return Status::Ok();
}

Status AdjacencyParser::CheckFlags() const {
  if ((header_.flags & ~kPartitionFlags) != 0)
    return Corrupt("header: unknown flags {:#x}", header_.flags);
  if (!keeps(kPartitionOut) && !keeps(kPartitionIn)) return Corrupt("header: no direction is kept");
  if (keeps(kPartitionSymmetric) && (!keeps(kPartitionOut) || keeps(kPartitionIn)))
    return Corrupt("header: symmetric, but not with out-lists only");
  if (keeps(kPartitionGrouped) != order_.grouped())
    return Corrupt("header: grouped rows contradict the order");
  const auto first = order_.grouped() ? order_.owner_begin(header_.partition) : Row{0};
  if (header_.first_row != static_cast<std::uint64_t>(first))
    return Corrupt("header: first row {}, but the order has {}", header_.first_row, first);
  return CheckSections();
}

// Refuses sections that the flags do not call for. Otherwise a damaged flag would silently drop
// lists.
Status AdjacencyParser::CheckSections() const {
  const bool typed = header_.edge_types > 1;
  const bool compressed = keeps(kPartitionCompressed);
  const auto called_for = [&](std::uint32_t kind) {
    const auto among = [&](PartitionSection first, PartitionSection last) {
      return kind >= Kind(first) && kind <= Kind(last);
    };
    using S = PartitionSection;
    if (among(S::kOutOffsetBases, S::kOutTypeLists) || among(S::kOutDegrees, S::kOutDegreePatches))
      if (!keeps(kPartitionOut)) return false;
    if (among(S::kInOffsetBases, S::kInTypeLists) || among(S::kInDegrees, S::kInDegreePatches))
      if (!keeps(kPartitionIn)) return false;
    if (among(S::kOutListBases, S::kOutLists) || among(S::kInListBases, S::kInLists))
      return compressed;
    if (among(S::kOutNeighbors, S::kOutNeighbors) || among(S::kInNeighbors, S::kInNeighbors))
      return !compressed;
    if (among(S::kOutTypeLists, S::kOutTypeLists) || among(S::kInTypeLists, S::kInTypeLists) ||
        among(S::kTypeListOffsets, S::kTypeEnds))
      return typed;
    if (among(S::kInEdges, S::kInEdges)) return keeps_in_edges();
    if (among(S::kWeights, S::kWeights)) return keeps(kPartitionWeighted);
    if (among(S::kOwnedRows, S::kOwnedRows)) return !keeps(kPartitionGrouped);
    return among(S::kHeader, S::kPartitionSets);
  };
  for (const std::uint32_t kind : adjacency_.file_.Kinds()) {
    if (!called_for(kind))
      return Corrupt("header: flags {:#x} deny section {}", header_.flags, kind);
  }
  return Status::Ok();
}

void AdjacencyParser::TakeHeader() {
  adjacency_.edge_count_ = header_.edges;
  adjacency_.partitions_ = header_.partitions;
  adjacency_.set_bytes_ = (header_.partitions + 7) / 8;
  adjacency_.symmetric_ = keeps(kPartitionSymmetric);
  adjacency_.weighted_ = keeps(kPartitionWeighted);
  adjacency_.attributed_ = keeps(kPartitionAttributed);
  adjacency_.grouped_ = keeps(kPartitionGrouped);
  adjacency_.codec_ =
      keeps(kPartitionCompressed) ? TopologyCodec::kEliasFano : TopologyCodec::kNone;
  adjacency_.base_ = static_cast<Row>(header_.first_row);
  adjacency_.keeps_out_ = keeps(kPartitionOut);
  adjacency_.keeps_in_ = keeps(kPartitionIn);
}

Status AdjacencyParser::ReadRows() {
  adjacency_.owned_count_ = header_.owned;
  if (!adjacency_.grouped_) {
    RHIZOME_ASSIGN_OR_RETURN(adjacency_.owned_rows_,
                             ReadColumn(PartitionSection::kOwnedRows, header_.owned,
                                        /*limit=*/header_.vertices));
    RHIZOME_RETURN_IF_ERROR(CheckRows(adjacency_.owned_rows_, "owned rows", true));
  }
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.mirrors_,
                           ReadColumn(PartitionSection::kMirrors, header_.mirrors,
                                      /*limit=*/header_.vertices));
  return CheckRows(adjacency_.mirrors_, "mirrors", false);
}

Status AdjacencyParser::CheckRows(const Column& rows, const char* field, bool owned) const {
  if (paged()) return Status::Ok();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint64_t row = rows[i];
    if (row >= header_.vertices)
      return Corrupt("{}, entry {}: row {} is beyond the {} rows", field, i, row, header_.vertices);
    if (i > 0 && rows[i - 1] >= row) return Corrupt("{}, entry {}: is not ascending", field, i);
    if ((order_.OwnerOf(static_cast<Row>(row)) == header_.partition) != owned)
      return Corrupt("{}, entry {}: row {} has another owner", field, i, row);
  }
  return Status::Ok();
}

Status AdjacencyParser::ReadSide(const SideKinds& kinds, Side& side) {
  const std::string name = fmt::format("{} offsets", kinds.name);
  RHIZOME_ASSIGN_OR_RETURN(side.offsets,
                           BlockedOffsets::Read(adjacency_.file_, kinds.offsets, vertices() + 1,
                                                header_.edges, name.c_str()));
  if (header_.edge_types > 1) {
    RHIZOME_ASSIGN_OR_RETURN(side.type_lists, ReadColumn(kinds.type_lists, vertices()));
  }
  return ReadLists(kinds, side);
}

Status AdjacencyParser::ReadLists(const SideKinds& kinds, Side& side) {
  const SectionFile& file = adjacency_.file_;
  const bool compressed = keeps(kPartitionCompressed);
  const std::uint32_t kind = Kind(compressed ? kinds.lists : kinds.neighbors);
  const std::uint64_t count = compressed ? file.Count(kind) : header_.edges;
  RHIZOME_RETURN_IF_ERROR(file.Expect(kind, compressed ? 1 : sizeof(LocalId), count));
  side.offset_bytes = file.OffsetBytes(kind);
  if (!file.Resident(kind)) adjacency_.resident_ = false;
  if (compressed) {
    side.list_bytes = count;
    const std::string name = fmt::format("{} list offsets", kinds.name);
    RHIZOME_ASSIGN_OR_RETURN(
        side.list_offsets,
        BlockedOffsets::Read(file, kinds.list_offsets, vertices() + 1, count, name.c_str()));
  }
  if (!file.Resident(kind)) return Status::Ok();
  if (!compressed) {
    RHIZOME_ASSIGN_OR_RETURN(side.neighbors, file.Section<LocalId>(kind, count));
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, file.Section<std::uint8_t>(kind, count));
  side.lists = std::as_bytes(bytes);
  return Status::Ok();
}

// Checks that types and ends ascend strictly within each type list. Type lists are numbered in the
// order of their first uses, out-lists before in-lists, so that equal partitions have equal files.
Status AdjacencyParser::ReadTypeLists() {
  if (header_.edge_types <= 1) return Status::Ok();
  const std::uint64_t entries = adjacency_.file_.Count(Kind(PartitionSection::kTypes));
  const std::uint64_t ends = adjacency_.file_.Count(Kind(PartitionSection::kTypeListOffsets));
  Column& offsets = adjacency_.type_list_offsets_;
  RHIZOME_ASSIGN_OR_RETURN(offsets, ReadColumn(PartitionSection::kTypeListOffsets, ends));
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.types_, ReadColumn(PartitionSection::kTypes, entries,
                                                         /*limit=*/header_.edge_types));
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.type_ends_, ReadColumn(PartitionSection::kTypeEnds, entries));
  if (paged()) return Status::Ok();
  if (offsets.empty() || offsets[0] != 0 || offsets[offsets.size() - 1] != entries)
    return Corrupt("type list offsets do not begin at 0 and end at the last entry");
  for (std::uint64_t list = 0; list + 1 < offsets.size(); ++list) {
    if (offsets[list] > offsets[list + 1] || offsets[list + 1] > entries)
      return Corrupt("type list offsets, entry {}: {} is out of order", list + 1,
                     offsets[list + 1]);
    std::uint64_t covered = 0;
    for (std::uint64_t k = offsets[list]; k < offsets[list + 1]; ++k) {
      const std::uint64_t type = adjacency_.types_[k];
      if (type >= header_.edge_types || (k > offsets[list] && type <= adjacency_.types_[k - 1]))
        return Corrupt("types, entry {}: type {} is out of range or order", k, type);
      if (adjacency_.type_ends_[k] <= covered)
        return Corrupt("type ends, entry {}: {} is not ascending", k, adjacency_.type_ends_[k]);
      covered = adjacency_.type_ends_[k];
    }
  }
  std::uint64_t seen = 0;
  if (keeps(kPartitionOut)) {
    RHIZOME_RETURN_IF_ERROR(CheckTypeLists(kOutKinds, adjacency_.out_, seen));
  }
  if (keeps(kPartitionIn)) {
    RHIZOME_RETURN_IF_ERROR(CheckTypeLists(kInKinds, adjacency_.in_, seen));
  }
  if (seen + 1 != offsets.size()) return Corrupt("type list {} belongs to no vertex", seen);
  return Status::Ok();
}

Status AdjacencyParser::CheckTypeLists(const SideKinds& kinds, const Side& side,
                                       std::uint64_t& seen) const {
  const Column& offsets = adjacency_.type_list_offsets_;
  for (std::uint64_t v = 0; v < vertices(); ++v) {
    const std::uint64_t list = side.type_lists[v];
    if (list > seen || list + 1 >= offsets.size())
      return Corrupt("{} type lists, entry {}: {} is out of range or order", kinds.name, v, list);
    seen = std::max(seen, list + 1);
    const std::uint64_t end = offsets[list + 1];
    const std::uint64_t covered = offsets[list] == end ? 0 : adjacency_.type_ends_[end - 1];
    if (covered != side.offsets[v + 1] - side.offsets[v])
      return Corrupt("{} type lists, entry {}: does not match the vertex's list", kinds.name, v);
  }
  return Status::Ok();
}

Status AdjacencyParser::ReadWeights() {
  if (!keeps(kPartitionWeighted)) return Status::Ok();
  if (paged()) {
    RHIZOME_RETURN_IF_ERROR(
        adjacency_.file_.Expect(Kind(PartitionSection::kWeights), sizeof(float), header_.edges));
    RHIZOME_ASSIGN_OR_RETURN(adjacency_.paged_weights_,
                             ReadColumn(PartitionSection::kWeights, header_.edges));
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(
      adjacency_.weights_,
      adjacency_.file_.Section<float>(Kind(PartitionSection::kWeights), header_.edges));
  for (std::uint64_t e = 0; e < header_.edges; ++e) {
    if (std::isnan(adjacency_.weights_[e])) return Corrupt("weights, entry {}: not a number", e);
  }
  return Status::Ok();
}

Status AdjacencyParser::ReadBoundary() {
  RHIZOME_ASSIGN_OR_RETURN(const auto words,
                           adjacency_.file_.Section<std::uint64_t>(
                               Kind(PartitionSection::kBoundaryOwned), (header_.owned + 63) / 64));
  adjacency_.boundary_ = RankBitmap(words);
  std::uint64_t count = 0;
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (std::uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
      const std::uint64_t local =
          std::uint64_t{w} * 64 + static_cast<std::uint64_t>(std::countr_zero(rest));
      if (local >= header_.owned || (adjacency_.resident_ && !touched_.Test(local)))
        return Corrupt("boundary vertices, word {}: vertex {} has no edge in this partition", w,
                       local);
      ++count;
    }
  }
  if (count != header_.boundary_owned)
    return Corrupt("boundary vertices: {}, but the header says {}", count, header_.boundary_owned);
  adjacency_.boundary_owned_count_ = count;
  for (std::uint64_t i = 0; i < header_.mirrors && adjacency_.resident_; ++i) {
    if (!touched_.Test(header_.owned + i))
      return Corrupt("mirrors, entry {}: has no edge in this partition", i);
  }
  if (keeps(kPartitionOut)) {
    RHIZOME_RETURN_IF_ERROR(ReadDegrees(kOutKinds, adjacency_.out_degrees_));
  }
  if (keeps(kPartitionIn)) {
    RHIZOME_RETURN_IF_ERROR(ReadDegrees(kInKinds, adjacency_.in_degrees_));
  }
  const std::uint64_t sets = (header_.boundary_owned + header_.mirrors) * adjacency_.set_bytes_;
  RHIZOME_RETURN_IF_ERROR(adjacency_.file_.Expect(Kind(PartitionSection::kPartitionSets), 1, sets));
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.partition_sets_,
                           ReadColumn(PartitionSection::kPartitionSets, sets));
  return paged() ? Status::Ok() : CheckSets();
}

// Degrees are stored minus the list's length, so no sum is below that length. The bound of 2^62
// keeps the sum from overflowing.
Status AdjacencyParser::ReadDegrees(const SideKinds& kinds, PatchedColumn& degrees) {
  const std::string name = fmt::format("{} degrees", kinds.name);
  RHIZOME_ASSIGN_OR_RETURN(degrees, PatchedColumn::Read(adjacency_.file_, kinds.degrees,
                                                        header_.boundary_owned + header_.mirrors,
                                                        std::uint64_t{1} << 62, name.c_str()));
  return Status::Ok();
}

// Checks that a boundary vertex has edges here, at its owner, and in at least two partitions.
Status AdjacencyParser::CheckSets() const {
  for (std::uint64_t v = 0; v < vertices(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const auto set = adjacency_.PartitionSet(local);
    if (set.empty()) continue;
    const auto holds = [&](std::uint32_t p) { return (set[p / 8] >> (p % 8) & 1) != 0; };
    int partitions = 0;
    for (const std::uint8_t byte : set) partitions += std::popcount(byte);
    const bool excess =
        header_.partitions % 8 != 0 && (set.back() >> (header_.partitions % 8)) != 0;
    if (excess || partitions < 2 || !holds(header_.partition) ||
        !holds(order_.OwnerOf(adjacency_.RowOf(local)))) {
      return Corrupt("partition set of local vertex {}: wrong bits", local);
    }
  }
  return Status::Ok();
}

Result<Adjacency> Adjacency::Parse(SectionFile file, const VertexOrder& order,
                                   std::uint32_t partition, std::uint32_t partitions,
                                   std::uint32_t edge_types) {
  AdjacencyParser parser(std::move(file), order);
  RHIZOME_RETURN_IF_ERROR(parser.Run(partition, partitions, edge_types));
  return parser.Take();
}

Result<Adjacency> Adjacency::ParseHeader(SectionFile file, const VertexOrder& order,
                                         std::uint32_t partition, std::uint32_t partitions,
                                         std::uint32_t edge_types, bool resident) {
  AdjacencyParser parser(std::move(file), order);
  RHIZOME_RETURN_IF_ERROR(parser.RunHeader(partition, partitions, edge_types, resident));
  return parser.Take();
}

}  // namespace internal
}  // namespace rhizome
