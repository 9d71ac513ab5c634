#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/adjacency_format.h"
#include "rhizome/index/parallel.h"
#include "rhizome/index/section_struct.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

// Vertices whose lists one task checks.
constexpr std::uint64_t kGrain = 1 << 14;

}  // namespace

/// Checks a partition file field by field, in one pass over each section, lists in parallel.
/// Nothing is read through an index that was not compared with its bound before, so any bytes are
/// safe to parse. Of lists that were left on disk, only what is said about them can be checked.
class AdjacencyParser {
 public:
  AdjacencyParser(SectionFile file, const VertexOrder& order) : order_(order) {
    adjacency_.file_ = std::move(file);
  }

  Status Run(std::uint32_t partition, std::uint32_t partitions, std::uint32_t edge_types);
  Adjacency Take() { return std::move(adjacency_); }

 private:
  using Side = Adjacency::Side;

  Status ReadHeader(std::uint32_t partition, std::uint32_t partitions, std::uint32_t edge_types);
  Status CheckFlags() const;
  Status CheckSections() const;
  Status ReadRows();
  Status CheckRows(const Column& rows, const char* field, bool owned) const;
  Status ReadSide(const SideKinds& kinds, Side& side);
  Status ReadLists(const SideKinds& kinds, Side& side);
  Status ReadTypeLists();
  Status CheckTypeLists(const SideKinds& kinds, const Side& side, std::uint64_t& seen) const;
  Status CheckLists(const SideKinds& kinds, const Side& side);
  Status CheckList(const SideKinds& kinds, const Side& side, LocalId local,
                   std::vector<LocalId>& scratch);
  Status CheckPlain(const SideKinds& kinds, const Side& side, LocalId local);
  Status CheckRun(const SideKinds& kinds, const Side& side, std::uint64_t begin, std::uint64_t end);
  Status DescribeRun(const SideKinds& kinds, std::span<const LocalId> list,
                     std::uint64_t begin) const;
  Status ReadInEdges();
  Status CheckInEdgeRange() const;
  Status CheckInEdge(LocalId local, std::uint64_t position, LocalId source, TypeId type,
                     bool repeats) const;
  LocalId OutNeighborAt(LocalId local, std::uint64_t i) const;
  Status ReadWeights();
  Status ReadBoundary();
  Status ReadDegrees(const SideKinds& kinds, PatchedColumn& degrees);
  Status CheckSets() const;

  bool keeps(std::uint32_t flag) const { return (header_.flags & flag) != 0; }
  bool keeps_in_edges() const {
    return keeps(kPartitionOut) && keeps(kPartitionIn) &&
           (keeps(kPartitionWeighted) || keeps(kPartitionAttributed));
  }
  std::uint64_t vertices() const { return header_.owned + header_.mirrors; }
  /// Are there vertices of which an edge must be here?
  bool replicated() const { return header_.mirrors + header_.boundary_owned > 0; }
  void Touch(LocalId local) { touched_.SetShared(local); }
  Result<Column> ReadColumn(PartitionSection kind, std::uint64_t count) const {
    return Column::Read(adjacency_.file_, Kind(kind), count);
  }

  template <typename... Args>
  Status Corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return Status::Corruption(fmt::format("{}: {}", adjacency_.file_.path().string(),
                                          fmt::format(format, std::forward<Args>(args)...)));
  }

  const VertexOrder& order_;
  Adjacency adjacency_;
  PartitionHeader header_{};
  RankBitmap touched_;  // local vertices that an edge was seen of; where replicated()
};

Status AdjacencyParser::Run(std::uint32_t partition, std::uint32_t partitions,
                            std::uint32_t edge_types) {
  RHIZOME_RETURN_IF_ERROR(ReadHeader(partition, partitions, edge_types));
  RHIZOME_RETURN_IF_ERROR(CheckFlags());
  RHIZOME_RETURN_IF_ERROR(ReadRows());
  if (keeps(kPartitionOut)) {
    RHIZOME_RETURN_IF_ERROR(ReadSide(kOutKinds, adjacency_.out_));
  }
  if (keeps(kPartitionIn)) {
    RHIZOME_RETURN_IF_ERROR(ReadSide(kInKinds, adjacency_.in_));
  }
  RHIZOME_RETURN_IF_ERROR(ReadTypeLists());
  touched_ = RankBitmap(vertices());
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
    return Corrupt("header: grouped rows do not fit the order");
  const auto first = order_.grouped() ? order_.owner_begin(header_.partition) : Row{0};
  if (header_.first_row != static_cast<std::uint64_t>(first))
    return Corrupt("header: first row {}, but the order has {}", header_.first_row, first);
  return CheckSections();
}

// What the header does not call for must not be there: else a lost flag would silently lose lists.
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

Status AdjacencyParser::ReadRows() {
  adjacency_.edge_count_ = header_.edges;
  adjacency_.owned_count_ = header_.owned;
  adjacency_.set_bytes_ = (header_.partitions + 7) / 8;
  adjacency_.symmetric_ = keeps(kPartitionSymmetric);
  adjacency_.weighted_ = keeps(kPartitionWeighted);
  adjacency_.attributed_ = keeps(kPartitionAttributed);
  adjacency_.grouped_ = keeps(kPartitionGrouped);
  adjacency_.codec_ =
      keeps(kPartitionCompressed) ? TopologyCodec::kEliasFano : TopologyCodec::kNone;
  adjacency_.base_ = static_cast<Row>(header_.first_row);
  if (!adjacency_.grouped_) {
    RHIZOME_ASSIGN_OR_RETURN(adjacency_.owned_rows_,
                             ReadColumn(PartitionSection::kOwnedRows, header_.owned));
    RHIZOME_RETURN_IF_ERROR(CheckRows(adjacency_.owned_rows_, "owned rows", true));
  }
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.mirrors_,
                           ReadColumn(PartitionSection::kMirrors, header_.mirrors));
  return CheckRows(adjacency_.mirrors_, "mirrors", false);
}

Status AdjacencyParser::CheckRows(const Column& rows, const char* field, bool owned) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint64_t row = rows[i];
    if (row >= header_.vertices)
      return Corrupt("{}, entry {}: row {} is beyond the {} rows", field, i, row, header_.vertices);
    if (i > 0 && rows[i - 1] >= row) return Corrupt("{}, entry {}: does not rise", field, i);
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

// The type lists: types and ends rise strictly within each. Their order is that of their first
// uses, out-lists before in-lists, so that equal partitions have equal files.
Status AdjacencyParser::ReadTypeLists() {
  if (header_.edge_types <= 1) return Status::Ok();
  const std::uint64_t entries = adjacency_.file_.Count(Kind(PartitionSection::kTypes));
  const std::uint64_t ends = adjacency_.file_.Count(Kind(PartitionSection::kTypeListOffsets));
  Column& offsets = adjacency_.type_list_offsets_;
  RHIZOME_ASSIGN_OR_RETURN(offsets, ReadColumn(PartitionSection::kTypeListOffsets, ends));
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.types_, ReadColumn(PartitionSection::kTypes, entries));
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.type_ends_, ReadColumn(PartitionSection::kTypeEnds, entries));
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
        return Corrupt("type ends, entry {}: {} does not rise", k, adjacency_.type_ends_[k]);
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
  if (seen + 1 != offsets.size()) return Corrupt("type list {} is no vertex's", seen);
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
      return Corrupt("{} type lists, entry {}: does not fit the vertex's list", kinds.name, v);
  }
  return Status::Ok();
}

// The lists themselves, many vertices at a time on all threads; the first finding counts.
Status AdjacencyParser::CheckLists(const SideKinds& kinds, const Side& side) {
  if (!adjacency_.resident_) return Status::Ok();
  std::vector<Status> findings((vertices() + kGrain - 1) / kGrain);
  ParallelFor(findings.size(), [&](std::size_t task) {
    std::vector<LocalId> scratch;
    const std::uint64_t end = std::min(vertices(), (task + 1) * kGrain);
    for (std::uint64_t v = task * kGrain; v < end && findings[task].ok(); ++v)
      findings[task] = CheckList(kinds, side, static_cast<LocalId>(v), scratch);
  });
  for (Status& finding : findings) RHIZOME_RETURN_IF_ERROR(std::move(finding));
  return Status::Ok();
}

Status AdjacencyParser::CheckList(const SideKinds& kinds, const Side& side, LocalId local,
                                  std::vector<LocalId>& scratch) {
  const std::uint64_t begin = side.offsets[local];
  const std::uint64_t end = side.offsets[local + std::size_t{1}];
  if (begin != end) Touch(local);
  if (!keeps(kPartitionCompressed)) return CheckPlain(kinds, side, local);
  const Direction direction = &side == &adjacency_.out_ ? Direction::kOut : Direction::kIn;
  const auto bytes = adjacency_.CompressedBytes(local, direction);
  if (!adjacency_.DecodeList(local, direction, bytes, scratch))
    return Corrupt("{} lists: the list of local vertex {} cannot be decoded", kinds.name, local);
  if (replicated())
    for (const LocalId neighbor : scratch) Touch(neighbor);
  return Status::Ok();
}

Status AdjacencyParser::CheckPlain(const SideKinds& kinds, const Side& side, LocalId local) {
  const std::uint64_t first = side.offsets[local];
  if (side.type_lists.empty())
    return CheckRun(kinds, side, first, side.offsets[local + std::size_t{1}]);
  const std::size_t list = side.type_lists[local];
  std::uint64_t begin = first;
  for (std::uint64_t k = adjacency_.type_list_offsets_[list];
       k < adjacency_.type_list_offsets_[list + 1]; ++k) {
    RHIZOME_RETURN_IF_ERROR(CheckRun(kinds, side, begin, first + adjacency_.type_ends_[k]));
    begin = first + adjacency_.type_ends_[k];
  }
  return Status::Ok();
}

// Neighbours of one vertex and type: in range, and not falling.
Status AdjacencyParser::CheckRun(const SideKinds& kinds, const Side& side, std::uint64_t begin,
                                 std::uint64_t end) {
  const auto list = side.neighbors.subspan(begin, end - begin);
  // Of a sorted list the last is the largest. Without a branch, so that it takes four at a time.
  bool falls = false;
  for (std::size_t i = 1; i < list.size(); ++i) falls |= list[i] < list[i - 1];
  if (falls || (!list.empty() && list.back() >= vertices())) return DescribeRun(kinds, list, begin);
  if (replicated())
    for (const LocalId neighbor : list) Touch(neighbor);
  return Status::Ok();
}

// What is wrong with the entries of one vertex and type, which stand at `begin`.
Status AdjacencyParser::DescribeRun(const SideKinds& kinds, std::span<const LocalId> list,
                                    std::uint64_t begin) const {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] >= vertices())
      return Corrupt("{} neighbours, entry {}: local id {} is beyond the {} vertices", kinds.name,
                     begin + i, list[i], vertices());
    if (i > 0 && list[i] < list[i - 1])
      return Corrupt("{} neighbours, entry {}: falls", kinds.name, begin + i);
  }
  return Status::Ok();
}

Status AdjacencyParser::ReadWeights() {
  if (!keeps(kPartitionWeighted)) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(
      adjacency_.weights_,
      adjacency_.file_.Section<float>(Kind(PartitionSection::kWeights), header_.edges));
  for (std::uint64_t e = 0; e < header_.edges; ++e) {
    if (std::isnan(adjacency_.weights_[e])) return Corrupt("weights, entry {}: not a number", e);
  }
  return Status::Ok();
}

// As many in-entries as edges, each naming an edge of its own: a bijection.
Status AdjacencyParser::ReadInEdges() {
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.in_edges_,
                           ReadColumn(PartitionSection::kInEdges, header_.edges));
  if (!adjacency_.resident_) return CheckInEdgeRange();
  std::vector<LocalId> scratch;
  for (std::uint64_t v = 0; v < vertices(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const std::uint64_t first = adjacency_.in_.offsets[v];
    const auto sources = adjacency_.ReadList(local, Direction::kIn, scratch);
    TypeId type_before = 0;
    for (std::uint64_t i = 0; i < sources.size(); ++i) {
      const TypeId type = adjacency_.TypeOfEntry(local, Direction::kIn, i);
      const bool repeats = i > 0 && type == type_before && sources[i] == sources[i - 1];
      RHIZOME_RETURN_IF_ERROR(CheckInEdge(local, first + i, sources[i], type, repeats));
      type_before = type;
    }
  }
  return Status::Ok();
}

Status AdjacencyParser::CheckInEdgeRange() const {
  for (std::uint64_t i = 0; i < header_.edges; ++i) {
    if (adjacency_.in_edges_[i] >= header_.edges)
      return Corrupt("in edges, entry {}: {} is not an edge", i, adjacency_.in_edges_[i]);
  }
  return Status::Ok();
}

Status AdjacencyParser::CheckInEdge(LocalId local, std::uint64_t position, LocalId source,
                                    TypeId type, bool repeats) const {
  const std::uint64_t edge = adjacency_.in_edges_[position];
  const auto list = adjacency_.Entries(source, Direction::kOut);
  const bool fits = edge >= list.first && edge < list.first + list.count &&
                    OutNeighborAt(source, edge - list.first) == local &&
                    adjacency_.TypeOfEntry(source, Direction::kOut, edge - list.first) == type;
  if (!fits)
    return Corrupt("in edges, entry {}: {} is not an edge between its vertices", position, edge);
  if (repeats && edge <= adjacency_.in_edges_[position - 1])
    return Corrupt("in edges, entry {}: parallel edges do not rise", position);
  return Status::Ok();
}

LocalId AdjacencyParser::OutNeighborAt(LocalId local, std::uint64_t i) const {
  if (!keeps(kPartitionCompressed))
    return adjacency_.out_.neighbors[adjacency_.out_.offsets[local] + i];
  const auto bytes = adjacency_.CompressedBytes(local, Direction::kOut);
  const auto neighbor = adjacency_.DecodeEntry(local, Direction::kOut, bytes, i);
  RHIZOME_CHECK(neighbor.has_value());  // CheckList has decoded it
  return *neighbor;
}

Status AdjacencyParser::ReadBoundary() {
  RHIZOME_ASSIGN_OR_RETURN(const auto words,
                           adjacency_.file_.Section<std::uint64_t>(
                               Kind(PartitionSection::kBoundaryOwned), (header_.owned + 63) / 64));
  adjacency_.boundary_ = RankBitmap(header_.owned);
  std::uint64_t count = 0;
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (std::uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
      const std::uint64_t local =
          std::uint64_t{w} * 64 + static_cast<std::uint64_t>(std::countr_zero(rest));
      if (local >= header_.owned || (adjacency_.resident_ && !touched_.Test(local)))
        return Corrupt("boundary vertices, word {}: vertex {} has no edge here", w, local);
      adjacency_.boundary_.Set(local);
      ++count;
    }
  }
  if (count != header_.boundary_owned)
    return Corrupt("boundary vertices: {}, but the header says {}", count, header_.boundary_owned);
  adjacency_.boundary_.Seal();
  adjacency_.boundary_owned_count_ = count;
  for (std::uint64_t i = 0; i < header_.mirrors && adjacency_.resident_; ++i) {
    if (!touched_.Test(header_.owned + i)) return Corrupt("mirrors, entry {}: has no edge here", i);
  }
  if (keeps(kPartitionOut)) {
    RHIZOME_RETURN_IF_ERROR(ReadDegrees(kOutKinds, adjacency_.out_degrees_));
  }
  if (keeps(kPartitionIn)) {
    RHIZOME_RETURN_IF_ERROR(ReadDegrees(kInKinds, adjacency_.in_degrees_));
  }
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.partition_sets_,
                           adjacency_.file_.Section<std::uint8_t>(
                               Kind(PartitionSection::kPartitionSets),
                               (header_.boundary_owned + header_.mirrors) * adjacency_.set_bytes_));
  return CheckSets();
}

// Degrees stand above the list's length, so no sum is below it; nor may one overflow.
Status AdjacencyParser::ReadDegrees(const SideKinds& kinds, PatchedColumn& degrees) {
  const std::string name = fmt::format("{} degrees", kinds.name);
  RHIZOME_ASSIGN_OR_RETURN(degrees, PatchedColumn::Read(adjacency_.file_, kinds.degrees,
                                                        header_.boundary_owned + header_.mirrors,
                                                        std::uint64_t{1} << 62, name.c_str()));
  return Status::Ok();
}

// A boundary vertex has edges here, at its owner, and in at least two partitions.
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

}  // namespace rhizome
