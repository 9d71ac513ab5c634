#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "index/topology/adjacency.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/compressed_list.h"
#include "index/topology/rank_bitmap.h"
#include "index/topology/section_struct.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

/// One direction's adjacency lists, sorted by (vertex, type, neighbour).
struct Lists {
  std::vector<std::uint64_t> offsets;  // [vertices + 1]
  std::vector<LocalId> neighbors;      // [edges]
  std::vector<TypeId> types;           // [edges]; empty: one edge type
};

/// The edges by local id. An edge is an entry in the adjacency list of its `from`.
struct LocalEdges {
  std::vector<LocalId> from;
  std::vector<LocalId> to;
};

/// The distinct type lists of a partition's vertices, numbered by first use.
class TypeLists {
 public:
  /// Returns the number of the type list for entries with these types, which must not descend.
  std::uint64_t NumberOf(std::span<const TypeId> types) {
    RHIZOME_DCHECK(std::is_sorted(types.begin(), types.end()));
    key_.clear();
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (i + 1 < types.size() && types[i + 1] == types[i]) continue;
      const std::uint64_t run[2] = {types[i], i + 1};
      key_.append(reinterpret_cast<const char*>(run), sizeof(run));
    }
    const auto [place, added] = numbers_.try_emplace(key_, numbers_.size());
    if (added) Keep();
    return place->second;
  }
  Status Write(SectionFileWriter& writer) const {
    RHIZOME_RETURN_IF_ERROR(
        WriteColumn(writer, Kind(PartitionSection::kTypeListOffsets), offsets_));
    RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(PartitionSection::kTypes), types_));
    return WriteColumn(writer, Kind(PartitionSection::kTypeEnds), ends_);
  }

 private:
  void Keep() {
    for (std::size_t at = 0; at < key_.size(); at += 2 * sizeof(std::uint64_t)) {
      std::uint64_t run[2];
      std::memcpy(run, key_.data() + at, sizeof(run));
      types_.push_back(run[0]);
      ends_.push_back(run[1]);
    }
    offsets_.push_back(types_.size());
  }
  std::unordered_map<std::string, std::uint64_t> numbers_;
  std::string key_;
  std::vector<std::uint64_t> offsets_ = {0};
  std::vector<std::uint64_t> types_;
  std::vector<std::uint64_t> ends_;
};

/// Places entries in the lists of their vertices. The offsets of the lists are complete once all
/// entries are placed; until then offset v + 1 is the next free place of list v, so that no second
/// column is needed.
class ListPlaces {
 public:
  ListPlaces(std::span<const LocalId> vertex_of_entry, std::uint64_t vertices)
      : offsets_(vertices + 1, 0) {
    for (const LocalId vertex : vertex_of_entry)
      if (vertex + std::uint64_t{1} < vertices) ++offsets_[vertex + std::size_t{2}];
    for (std::uint64_t v = 1; v < vertices; ++v) offsets_[v + 1] += offsets_[v];
  }
  std::uint64_t Next(LocalId vertex) { return offsets_[vertex + std::size_t{1}]++; }
  std::vector<std::uint64_t> TakeOffsets() { return std::move(offsets_); }

 private:
  std::vector<std::uint64_t> offsets_;
};

/// Returns whether every list is in the order of (type, neighbour).
bool ListsAreSorted(const Lists& lists) {
  const auto entry = [&](std::uint64_t e) {
    return std::pair(lists.types.empty() ? TypeId{0} : lists.types[e], lists.neighbors[e]);
  };
  for (std::size_t v = 0; v + 1 < lists.offsets.size(); ++v) {
    for (std::uint64_t e = lists.offsets[v] + 1; e < lists.offsets[v + 1]; ++e)
      if (entry(e) < entry(e - 1)) return false;
  }
  return true;
}

// Sorts a list only if necessary: compaction passes lists of the previous generation, which are
// mostly sorted already.
template <typename T, typename Less>
void SortUnlessSorted(std::span<T> list, Less less) {
  if (!std::is_sorted(list.begin(), list.end(), less)) std::sort(list.begin(), list.end(), less);
}

/// Builds and writes one partition. It builds the sections one direction at a time and frees each
/// after writing it, so that the peak is about 30 bytes an edge, and below kWriteBytesPerVertex a
/// vertex besides.
class PartitionWriter {
 public:
  PartitionWriter(ByteSink& sink, const StoreId& store_id, const VertexOrder& order,
                  const PartitionContext& context, EdgesOfPartition edges)
      : writer_(sink, FileKind::kPartition, store_id),
        order_(order),
        context_(context),
        edges_(std::move(edges)),
        edge_count_(edges_.src.size()) {}

  Status Write();

 private:
  bool keeps_out() const { return context_.symmetric || context_.directions != Direction::kIn; }
  bool compressed() const { return context_.codec == TopologyCodec::kEliasFano; }
  bool keeps_in() const { return !context_.symmetric && context_.directions != Direction::kOut; }
  bool keeps_in_edges() const {
    return keeps_out() && keeps_in() && (context_.weighted || context_.attributed);
  }

  Status NumberVertices();
  LocalId LocalOf(Row row) const;
  std::vector<LocalId> ToLocal(std::vector<Row>& rows) const;
  Lists SortEdges(LocalEdges ends);
  Lists SortNeighbors(LocalEdges ends) const;
  Lists Transpose(const Lists& lists);
  Status WriteHeader();
  Status WriteRows();
  Status WriteLists(const SideKinds& kinds, const Lists& lists);
  Status WriteCompressed(const SideKinds& kinds, const Lists& lists);
  Status WriteTypeIndex(const SideKinds& kinds, const Lists& lists);
  Status WriteEdges();
  Status WriteBoundary();
  Status WriteDegrees(const SideKinds& kinds, const Degrees& degree_of_row,
                      std::span<const std::uint64_t> degree_here);
  std::span<const std::uint8_t> SetOf(Row row) const;
  template <typename Visit>
  void ForEachBoundaryRow(Visit visit) const;

  SectionFileWriter writer_;
  const VertexOrder& order_;
  const PartitionContext& context_;
  EdgesOfPartition edges_;
  const std::uint64_t edge_count_;

  RankBitmap mirror_rows_;
  RankBitmap owned_bits_;                  // not grouped
  std::vector<std::uint64_t> owned_rows_;  // not grouped
  std::vector<std::uint64_t> mirrors_;
  std::vector<std::uint64_t> boundary_owned_;
  std::vector<float> weights_;  // by edge id
  std::vector<std::uint64_t> in_edges_;
  TypeLists type_lists_;
  std::vector<std::uint64_t> out_here_;  // lengths of the lists of boundary vertices and mirrors
  std::vector<std::uint64_t> in_here_;
  Row base_ = 0;
  std::uint64_t owned_ = 0;
  std::uint64_t vertices_ = 0;
};

// Writes a partition file:
// 1. assigns local ids to the owned rows and the mirrors, and finds the boundary vertices;
// 2. writes the header and the rows;
// 3. sorts the edges into the lists of the first stored direction, and transposes those for the
//    second; each direction is written before the next one is built;
// 4. writes the type lists and weights;
// 5. writes boundary vertices, their degrees and partition sets.
Status PartitionWriter::Write() {
  RHIZOME_RETURN_IF_ERROR(NumberVertices());
  RHIZOME_RETURN_IF_ERROR(WriteHeader());
  RHIZOME_RETURN_IF_ERROR(WriteRows());
  RHIZOME_RETURN_IF_ERROR(WriteEdges());
  RHIZOME_RETURN_IF_ERROR(WriteBoundary());
  return writer_.Finish();
}

std::span<const std::uint8_t> PartitionWriter::SetOf(Row row) const {
  const std::size_t bytes = PartitionSetBytes(context_.partitions);
  return context_.partition_set.subspan(static_cast<std::size_t>(row) * bytes, bytes);
}

Status PartitionWriter::NumberVertices() {
  owned_ = order_.owned_count(context_.partition);
  if (order_.grouped()) {
    base_ = order_.owner_begin(context_.partition);
  } else {
    owned_bits_ = RankBitmap(order_.size());
    for (Row row = 0; row < static_cast<Row>(order_.size()); ++row) {
      if (order_.OwnerOf(row) != context_.partition) continue;
      owned_bits_.Set(static_cast<std::uint64_t>(row));
      owned_rows_.push_back(static_cast<std::uint64_t>(row));
    }
    owned_bits_.Seal();
  }
  mirror_rows_ = RankBitmap(order_.size());
  for (const Row row : edges_.src) mirror_rows_.Set(static_cast<std::uint64_t>(row));
  for (const Row row : edges_.dst) mirror_rows_.Set(static_cast<std::uint64_t>(row));
  for (std::uint64_t i = 0; i < owned_; ++i)
    mirror_rows_.Clear(order_.grouped() ? static_cast<std::uint64_t>(base_) + i : owned_rows_[i]);
  mirror_rows_.Seal();
  mirror_rows_.ForEach([&](std::uint64_t row) { mirrors_.push_back(row); });
  vertices_ = owned_ + mirrors_.size();
  RHIZOME_DCHECK(std::is_sorted(owned_rows_.begin(), owned_rows_.end()) &&
                 std::is_sorted(mirrors_.begin(), mirrors_.end()));
  RHIZOME_DCHECK(order_.grouped() || owned_rows_.size() == owned_);
  if (vertices_ >= UINT32_MAX)
    return Status::InvalidArgument(
        fmt::format("partition {} would hold {} vertices, more than 2^32 - 2; use more partitions",
                    context_.partition, vertices_));
  for (std::uint64_t i = 0; i < owned_; ++i) {
    const Row row =
        order_.grouped() ? base_ + static_cast<Row>(i) : static_cast<Row>(owned_rows_[i]);
    int partitions = 0;
    for (const std::uint8_t byte : SetOf(row)) partitions += std::popcount(byte);
    if (partitions > 1) boundary_owned_.push_back(i);
  }
  return Status::Ok();
}

LocalId PartitionWriter::LocalOf(Row row) const {
  const auto index = static_cast<std::uint64_t>(row);
  if (mirror_rows_.Test(index)) return static_cast<LocalId>(owned_ + mirror_rows_.Rank(index));
  return static_cast<LocalId>(order_.grouped() ? static_cast<std::uint64_t>(row - base_)
                                               : owned_bits_.Rank(index));
}

std::vector<LocalId> PartitionWriter::ToLocal(std::vector<Row>& rows) const {
  std::vector<LocalId> locals(rows.size());
  std::transform(rows.begin(), rows.end(), locals.begin(), [&](Row row) { return LocalOf(row); });
  std::vector<Row>().swap(rows);
  return locals;
}

/// SortEdges for edges without types and weights.
Lists PartitionWriter::SortNeighbors(LocalEdges ends) const {
  Lists lists{{}, std::vector<LocalId>(edge_count_), {}};
  ListPlaces places(ends.from, vertices_);
  for (std::uint64_t e = 0; e < edge_count_; ++e)
    lists.neighbors[places.Next(ends.from[e])] = ends.to[e];
  lists.offsets = places.TakeOffsets();
  RHIZOME_DCHECK(lists.offsets.back() == edge_count_);
  for (std::uint64_t v = 0; v < vertices_; ++v) {
    SortUnlessSorted(std::span(lists.neighbors)
                         .subspan(lists.offsets[v], lists.offsets[v + 1] - lists.offsets[v]),
                     std::less<LocalId>());
  }
  return lists;
}

/// Sorts the edges into the adjacency lists of `ends.from`, and fills weights_. Equal edges are
/// sorted by weight, so that the result does not depend on the order of the input.
Lists PartitionWriter::SortEdges(LocalEdges ends) {
  struct Entry {
    LocalId neighbor;
    TypeId type;
    float weight;
  };
  if (!context_.weighted && context_.edge_types <= 1) {
    edges_ = {};
    return SortNeighbors(std::move(ends));
  }
  Lists lists;
  std::vector<Entry> entries(edge_count_);
  ListPlaces places(ends.from, vertices_);
  for (std::uint64_t e = 0; e < edge_count_; ++e)
    entries[places.Next(ends.from[e])] = {ends.to[e],
                                          edges_.type.empty() ? TypeId{0} : edges_.type[e],
                                          edges_.weight.empty() ? 1.0F : edges_.weight[e]};
  lists.offsets = places.TakeOffsets();
  ends = {};
  edges_ = {};
  for (std::uint64_t v = 0; v < vertices_; ++v) {
    SortUnlessSorted(
        std::span(entries).subspan(lists.offsets[v], lists.offsets[v + 1] - lists.offsets[v]),
        [](const Entry& a, const Entry& b) {
          return std::tie(a.type, a.neighbor, a.weight) < std::tie(b.type, b.neighbor, b.weight);
        });
  }
  lists.neighbors.reserve(edge_count_);
  for (const Entry& entry : entries) lists.neighbors.push_back(entry.neighbor);
  if (context_.edge_types > 1) {
    lists.types.reserve(edge_count_);
    for (const Entry& entry : entries) lists.types.push_back(entry.type);
  }
  if (context_.weighted) {
    weights_.reserve(edge_count_);
    for (const Entry& entry : entries) weights_.push_back(entry.weight);
  }
  return lists;
}

/// Builds the lists of the other direction, and fills in_edges_. Within (vertex, type) the edge ids
/// ascend, and with them the neighbours.
Lists PartitionWriter::Transpose(const Lists& lists) {
  struct Entry {
    std::uint64_t edge;
    LocalId neighbor;
    TypeId type;
  };
  Lists transposed;
  ListPlaces places(lists.neighbors, vertices_);
  if (lists.types.empty() && !keeps_in_edges()) {
    transposed.neighbors.resize(edge_count_);
    for (std::uint64_t v = 0; v < vertices_; ++v) {
      for (std::uint64_t e = lists.offsets[v]; e < lists.offsets[v + 1]; ++e)
        transposed.neighbors[places.Next(lists.neighbors[e])] = static_cast<LocalId>(v);
    }
    transposed.offsets = places.TakeOffsets();
    return transposed;
  }
  std::vector<Entry> entries(edge_count_);
  for (std::uint64_t v = 0; v < vertices_; ++v) {
    for (std::uint64_t e = lists.offsets[v]; e < lists.offsets[v + 1]; ++e)
      entries[places.Next(lists.neighbors[e])] = {e, static_cast<LocalId>(v),
                                                  lists.types.empty() ? TypeId{0} : lists.types[e]};
  }
  transposed.offsets = places.TakeOffsets();
  for (std::uint64_t v = 0; v < vertices_ && !lists.types.empty(); ++v) {
    std::sort(entries.begin() + static_cast<std::ptrdiff_t>(transposed.offsets[v]),
              entries.begin() + static_cast<std::ptrdiff_t>(transposed.offsets[v + 1]),
              [](const Entry& a, const Entry& b) {
                return std::tie(a.type, a.edge) < std::tie(b.type, b.edge);
              });
  }
  transposed.neighbors.reserve(edge_count_);
  for (const Entry& entry : entries) transposed.neighbors.push_back(entry.neighbor);
  if (!lists.types.empty()) {
    transposed.types.reserve(edge_count_);
    for (const Entry& entry : entries) transposed.types.push_back(entry.type);
  }
  if (keeps_in_edges()) {
    in_edges_.reserve(edge_count_);
    for (const Entry& entry : entries) in_edges_.push_back(entry.edge);
  }
  return transposed;
}

Status PartitionWriter::WriteHeader() {
  const PartitionHeader header{.vertices = order_.size(),
                               .edges = edge_count_,
                               .owned = owned_,
                               .mirrors = mirrors_.size(),
                               .first_row = static_cast<std::uint64_t>(base_),
                               .boundary_owned = boundary_owned_.size(),
                               .partition = context_.partition,
                               .partitions = context_.partitions,
                               .edge_types = context_.edge_types,
                               .flags = (keeps_out() ? kPartitionOut : 0) |
                                        (keeps_in() ? kPartitionIn : 0) |
                                        (context_.symmetric ? kPartitionSymmetric : 0) |
                                        (order_.grouped() ? kPartitionGrouped : 0) |
                                        (context_.weighted ? kPartitionWeighted : 0) |
                                        (context_.attributed ? kPartitionAttributed : 0) |
                                        (compressed() ? kPartitionCompressed : 0)};
  return WriteStructs<PartitionHeader>(writer_, Kind(PartitionSection::kHeader),
                                       std::span(&header, 1));
}

Status PartitionWriter::WriteRows() {
  if (!order_.grouped()) {
    RHIZOME_RETURN_IF_ERROR(WriteColumn(writer_, Kind(PartitionSection::kOwnedRows), owned_rows_));
  }
  return WriteColumn(writer_, Kind(PartitionSection::kMirrors), mirrors_);
}

Status PartitionWriter::WriteLists(const SideKinds& kinds, const Lists& lists) {
  RHIZOME_DCHECK(lists.offsets.size() == vertices_ + 1 && lists.neighbors.size() == edge_count_);
  RHIZOME_DCHECK(lists.types.empty() || lists.types.size() == edge_count_);
  RHIZOME_DCHECK(ListsAreSorted(lists));
  RHIZOME_RETURN_IF_ERROR(WriteOffsets(writer_, kinds.offsets, lists.offsets));
  if (compressed()) {
    RHIZOME_RETURN_IF_ERROR(WriteCompressed(kinds, lists));
  } else {
    RHIZOME_RETURN_IF_ERROR(
        writer_.AddSection(Kind(kinds.neighbors), std::span<const LocalId>(lists.neighbors)));
  }
  std::vector<std::uint64_t>& here = &kinds == &kOutKinds ? out_here_ : in_here_;
  const auto length = [&](std::uint64_t v) { return lists.offsets[v + 1] - lists.offsets[v]; };
  for (const std::uint64_t v : boundary_owned_) here.push_back(length(v));
  for (std::uint64_t v = owned_; v < vertices_; ++v) here.push_back(length(v));
  return context_.edge_types > 1 ? WriteTypeIndex(kinds, lists) : Status::Ok();
}

// Adjacency::DecodeList documents the values of a compressed list.
Status PartitionWriter::WriteCompressed(const SideKinds& kinds, const Lists& lists) {
  RHIZOME_RETURN_IF_ERROR(writer_.BeginSection(Kind(kinds.lists), 1));
  std::vector<std::uint64_t> list_offsets = {0};
  list_offsets.reserve(vertices_ + 1);
  std::vector<std::uint64_t> values;
  std::vector<std::byte> bytes;
  for (std::uint64_t v = 0; v < vertices_; ++v) {
    values.clear();
    std::uint64_t first = 0;  // added to the neighbours of the entry's type
    for (std::uint64_t e = lists.offsets[v]; e < lists.offsets[v + 1]; ++e) {
      const bool new_type =
          !lists.types.empty() && e > lists.offsets[v] && lists.types[e] != lists.types[e - 1];
      if (new_type) first += vertices_;
      values.push_back(first + lists.neighbors[e]);
    }
    bytes.clear();
    AppendCompressedList(values, bytes);
    RHIZOME_RETURN_IF_ERROR(writer_.Append(bytes));
    list_offsets.push_back(list_offsets.back() + bytes.size());
  }
  return WriteOffsets(writer_, kinds.list_offsets, list_offsets);
}

Status PartitionWriter::WriteTypeIndex(const SideKinds& kinds, const Lists& lists) {
  std::vector<std::uint64_t> numbers(vertices_);
  for (std::uint64_t v = 0; v < vertices_; ++v) {
    numbers[v] = type_lists_.NumberOf(
        std::span(lists.types).subspan(lists.offsets[v], lists.offsets[v + 1] - lists.offsets[v]));
  }
  return WriteColumn(writer_, Kind(kinds.type_lists), numbers);
}

Status PartitionWriter::WriteEdges() {
  LocalEdges ends{ToLocal(edges_.src), ToLocal(edges_.dst)};
  if (!keeps_out()) std::swap(ends.from, ends.to);
  Lists lists = SortEdges(std::move(ends));
  RHIZOME_RETURN_IF_ERROR(WriteLists(keeps_out() ? kOutKinds : kInKinds, lists));
  if (keeps_out() && keeps_in()) {
    lists = Transpose(lists);
    RHIZOME_RETURN_IF_ERROR(WriteLists(kInKinds, lists));
    if (keeps_in_edges()) {
      RHIZOME_RETURN_IF_ERROR(WriteColumn(writer_, Kind(PartitionSection::kInEdges), in_edges_));
    }
  }
  if (context_.edge_types > 1) {
    RHIZOME_RETURN_IF_ERROR(type_lists_.Write(writer_));
  }
  RHIZOME_DCHECK(!context_.weighted || weights_.size() == edge_count_);
  if (!context_.weighted) return Status::Ok();
  return writer_.AddSection(Kind(PartitionSection::kWeights), std::span<const float>(weights_));
}

template <typename Visit>
void PartitionWriter::ForEachBoundaryRow(Visit visit) const {
  for (const std::uint64_t local : boundary_owned_)
    visit(order_.grouped() ? base_ + static_cast<Row>(local)
                           : static_cast<Row>(owned_rows_[local]));
  for (const std::uint64_t row : mirrors_) visit(static_cast<Row>(row));
}

Status PartitionWriter::WriteDegrees(const SideKinds& kinds, const Degrees& degree_of_row,
                                     std::span<const std::uint64_t> degree_here) {
  std::vector<std::uint64_t> above;
  above.reserve(degree_here.size());
  ForEachBoundaryRow([&](Row row) {
    const std::uint64_t degree = degree_of_row[static_cast<std::uint64_t>(row)];
    RHIZOME_DCHECK(degree >= degree_here[above.size()]);
    above.push_back(degree - degree_here[above.size()]);
  });
  return WritePatched(writer_, kinds.degrees, above);
}

Status PartitionWriter::WriteBoundary() {
  std::vector<std::uint64_t> words((owned_ + 63) / 64, 0);
  for (const std::uint64_t v : boundary_owned_) words[v / 64] |= std::uint64_t{1} << (v % 64);
  RHIZOME_RETURN_IF_ERROR(writer_.AddSection(Kind(PartitionSection::kBoundaryOwned),
                                             std::span<const std::uint64_t>(words)));
  if (keeps_out()) {
    RHIZOME_RETURN_IF_ERROR(WriteDegrees(kOutKinds, *context_.out_degree, out_here_));
  }
  if (keeps_in()) {
    RHIZOME_RETURN_IF_ERROR(WriteDegrees(kInKinds, *context_.in_degree, in_here_));
  }
  std::vector<std::uint8_t> sets;
  ForEachBoundaryRow([&](Row row) {
    const auto set = SetOf(row);
    sets.insert(sets.end(), set.begin(), set.end());
  });
  return writer_.AddSection(Kind(PartitionSection::kPartitionSets),
                            std::span<const std::uint8_t>(sets));
}

}  // namespace

Status Adjacency::Write(ByteSink& sink, const StoreId& store_id, const VertexOrder& order,
                        const PartitionContext& context, EdgesOfPartition edges) {
  return PartitionWriter(sink, store_id, order, context, std::move(edges)).Write();
}

}  // namespace internal
}  // namespace rhizome
