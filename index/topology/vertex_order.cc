#include "index/topology/vertex_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "index/topology/section_struct.h"
#include "index/topology/vertex_order_format.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint32_t Kind(OrderSection section) { return static_cast<std::uint32_t>(section); }

TypeId TypeOfVertex(const OrderInput& input, VertexId vertex) {
  return input.type_of_vertex.empty() ? TypeId{0}
                                      : input.type_of_vertex[static_cast<std::size_t>(vertex)];
}

std::pair<PartitionId, TypeId> GroupAt(const OrderInput& input, std::size_t row) {
  const VertexId vertex = input.vertex_of_row[row];
  return {input.owner_of_vertex[static_cast<std::size_t>(vertex)], TypeOfVertex(input, vertex)};
}

bool IsGrouped(const OrderInput& input) {
  for (std::size_t row = 1; row < input.vertex_of_row.size(); ++row) {
    if (GroupAt(input, row) < GroupAt(input, row - 1)) return false;
  }
  return true;
}

std::vector<OrderSegmentRecord> MakeSegments(const OrderInput& input) {
  std::vector<OrderSegmentRecord> segments;
  std::vector<std::uint64_t> typed_rows(input.vertex_types, 0);
  for (std::size_t row = 0; row < input.vertex_of_row.size(); ++row) {
    const auto [owner, type] = GroupAt(input, row);
    if (segments.empty() || segments.back().owner != owner || segments.back().type != type)
      segments.push_back({row, typed_rows[type], owner, type, 0});
    ++typed_rows[type];
  }
  return segments;
}

// Writes value_of(i) for each i of [0, count), none above `largest`.
template <typename ValueOf>
Status WriteValues(SectionFileWriter& writer, OrderSection section, std::uint64_t count,
                   std::uint64_t largest, std::uint32_t min_bytes, ValueOf&& value_of) {
  RHIZOME_ASSIGN_OR_RETURN(ColumnWriter column,
                           ColumnWriter::Begin(writer, Kind(section), largest, min_bytes));
  for (std::uint64_t i = 0; i < count; ++i) RHIZOME_RETURN_IF_ERROR(column.Add(value_of(i)));
  return column.Flush();
}

template <typename Number>
Status WriteRowOfVertex(SectionFileWriter& writer, const OrderInput& input) {
  const std::size_t n = input.vertex_of_row.size();
  std::vector<Number> row_of_vertex(n);
  for (std::size_t row = 0; row < n; ++row)
    row_of_vertex[static_cast<std::size_t>(input.vertex_of_row[row])] = static_cast<Number>(row);
  return writer.AddSection(Kind(OrderSection::kRowOfVertex),
                           std::span<const Number>(row_of_vertex));
}

Status WritePermutation(SectionFileWriter& writer, const OrderInput& input) {
  const std::uint64_t n = input.vertex_of_row.size();
  RHIZOME_RETURN_IF_ERROR(VertexColumn::FitsNarrow(n)
                              ? WriteRowOfVertex<std::uint32_t>(writer, input)
                              : WriteRowOfVertex<std::uint64_t>(writer, input));
  return WriteValues(
      writer, OrderSection::kVertexOfRow, n, n == 0 ? 0 : n - 1, 4,
      [&](std::uint64_t row) { return static_cast<std::uint64_t>(input.vertex_of_row[row]); });
}

template <typename T>
std::uint64_t Largest(std::span<const T> values) {
  return values.empty() ? 0 : std::uint64_t{*std::max_element(values.begin(), values.end())};
}

Status WriteOwners(SectionFileWriter& writer, const OrderInput& input) {
  const std::uint64_t n = input.vertex_of_row.size();
  RHIZOME_RETURN_IF_ERROR(
      WriteValues(writer, OrderSection::kOwnerOfRow, n, Largest(input.owner_of_vertex), 1,
                  [&](std::uint64_t row) -> std::uint64_t { return GroupAt(input, row).first; }));
  if (input.vertex_types == 1) return Status::Ok();
  return WriteValues(
      writer, OrderSection::kTypeOfRow, n, Largest(input.type_of_vertex), 1,
      [&](std::uint64_t row) -> std::uint64_t { return GroupAt(input, row).second; });
}

}  // namespace

Status VertexOrder::Write(ByteSink& sink, const StoreId& store_id, const OrderInput& input) {
  const bool grouped = IsGrouped(input);
  const auto segments = grouped ? MakeSegments(input) : std::vector<OrderSegmentRecord>();
  const OrderHeader header{.vertices = input.vertex_of_row.size(),
                           .segments = segments.size(),
                           .partitions = input.partitions,
                           .vertex_types = input.vertex_types,
                           .flags = grouped ? kOrderGrouped : 0,
                           .reserved = 0};
  SectionFileWriter writer(sink, FileKind::kOrder, store_id);
  RHIZOME_RETURN_IF_ERROR(
      WriteStructs<OrderHeader>(writer, Kind(OrderSection::kHeader), std::span(&header, 1)));
  RHIZOME_RETURN_IF_ERROR(WritePermutation(writer, input));
  if (grouped) {
    RHIZOME_RETURN_IF_ERROR(
        WriteStructs<OrderSegmentRecord>(writer, Kind(OrderSection::kSegments), segments));
  } else {
    RHIZOME_RETURN_IF_ERROR(WriteOwners(writer, input));
  }
  return writer.Finish();
}

Status VertexOrder::Corrupt(const std::string& what) const {
  return Status::Corruption(fmt::format("{}: {}", file_.path().string(), what));
}

// Parses an order file:
// 1. checks the header against the manifest;
// 2. reads the permutation;
// 3. reads the segments (grouped rows) or the columns of owners and types (other rows).
Result<VertexOrder> VertexOrder::Parse(SectionFile file, std::uint64_t vertex_count,
                                       std::uint32_t partitions, std::uint32_t vertex_types) {
  VertexOrder order;
  order.file_ = std::move(file);
  RHIZOME_ASSIGN_OR_RETURN(const auto headers,
                           ReadStructs<OrderHeader>(order.file_, Kind(OrderSection::kHeader), 1));
  const OrderHeader& header = headers.front();
  if (header.vertices != vertex_count || header.partitions != partitions ||
      header.vertex_types != vertex_types) {
    return Fail(order.Corrupt(fmt::format(
        "header: {} vertices, {} partitions and {} vertex types, but the manifest has {}, {}, {}",
        header.vertices, header.partitions, header.vertex_types, vertex_count, partitions,
        vertex_types)));
  }
  if ((header.flags & ~kOrderGrouped) != 0 || header.reserved != 0)
    return Fail(order.Corrupt("header: unknown flags, or reserved bytes that are not zero"));
  order.vertex_count_ = vertex_count;
  order.grouped_ = (header.flags & kOrderGrouped) != 0;
  order.owned_counts_.assign(partitions, 0);
  RHIZOME_RETURN_IF_ERROR(order.ReadPermutation());
  if (order.grouped_) {
    RHIZOME_RETURN_IF_ERROR(order.ReadSegments(header.segments, partitions, vertex_types));
  } else if (header.segments != 0) {
    return Fail(order.Corrupt("header: segments in an order that is not grouped"));
  } else {
    RHIZOME_RETURN_IF_ERROR(order.ReadOwners(partitions, vertex_types));
  }
  return order;
}

// Reads the two columns. Each must have n numbers below n, and each must invert the other; then
// both are permutations. This check needs no further memory.
Status VertexOrder::ReadPermutation() {
  RHIZOME_ASSIGN_OR_RETURN(row_of_vertex_,
                           Column::Read(file_, Kind(OrderSection::kRowOfVertex), vertex_count_,
                                        /*limit=*/vertex_count_));
  RHIZOME_ASSIGN_OR_RETURN(vertex_of_row_,
                           Column::Read(file_, Kind(OrderSection::kVertexOfRow), vertex_count_,
                                        /*limit=*/vertex_count_));
  if (file_.paged()) return Status::Ok();
  for (std::uint64_t row = 0; row < vertex_count_; ++row) {
    const std::uint64_t vertex = vertex_of_row_[row];
    if (vertex >= vertex_count_)
      return Corrupt(fmt::format("vertex of row {}: {} is beyond the {} vertices", row, vertex,
                                 vertex_count_));
    if (row_of_vertex_[vertex] != row)
      return Corrupt(fmt::format("row of vertex {}: {}, but row {} names that vertex", vertex,
                                 row_of_vertex_[vertex], row));
  }
  return Status::Ok();
}

Status VertexOrder::ReadSegments(std::uint64_t count, std::uint32_t partitions,
                                 std::uint32_t vertex_types) {
  RHIZOME_ASSIGN_OR_RETURN(const auto records, ReadStructs<OrderSegmentRecord>(
                                                   file_, Kind(OrderSection::kSegments), count));
  if (records.empty() != (vertex_count_ == 0)) return Corrupt("segments do not cover the rows");
  std::vector<std::uint64_t> typed_rows(vertex_types, 0);
  segments_.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const OrderSegmentRecord& record = records[i];
    const std::uint64_t end = i + 1 < records.size() ? records[i + 1].first_row : vertex_count_;
    const bool rises = i == 0 ? record.first_row == 0
                              : std::tie(records[i - 1].owner, records[i - 1].type) <
                                    std::tie(record.owner, record.type);
    if (!rises || record.first_row >= end || end > vertex_count_ || record.owner >= partitions ||
        record.type >= vertex_types || record.reserved != 0 ||
        record.first_typed_row != typed_rows[record.type]) {
      return Corrupt(fmt::format("segment {}: rows, owner or type are wrong", i));
    }
    typed_rows[record.type] += end - record.first_row;
    owned_counts_[record.owner] += end - record.first_row;
    segments_.push_back({static_cast<Row>(record.first_row),
                         static_cast<Row>(record.first_typed_row), record.owner, record.type});
  }
  owner_begin_.assign(partitions + std::size_t{1}, 0);
  for (std::uint32_t p = 0; p < partitions; ++p)
    owner_begin_[p + std::size_t{1}] = owner_begin_[p] + static_cast<Row>(owned_counts_[p]);
  return Status::Ok();
}

Status VertexOrder::ReadOwners(std::uint32_t partitions, std::uint32_t vertex_types) {
  RHIZOME_ASSIGN_OR_RETURN(owner_of_row_,
                           Column::Load(file_, Kind(OrderSection::kOwnerOfRow), vertex_count_));
  if (vertex_types > 1) {
    RHIZOME_ASSIGN_OR_RETURN(type_of_row_,
                             Column::Load(file_, Kind(OrderSection::kTypeOfRow), vertex_count_));
  }
  for (std::uint64_t row = 0; row < vertex_count_; ++row) {
    if (owner_of_row_[row] >= partitions)
      return Corrupt(fmt::format("owner of row {}: {} is beyond the {} partitions", row,
                                 owner_of_row_[row], partitions));
    if (!type_of_row_.empty() && type_of_row_[row] >= vertex_types)
      return Corrupt(fmt::format("type of row {}: {} is beyond the {} vertex types", row,
                                 type_of_row_[row], vertex_types));
    ++owned_counts_[owner_of_row_[row]];
  }
  return Status::Ok();
}

const OrderSegment& VertexOrder::SegmentOf(Row row) const {
  const auto after = std::upper_bound(
      segments_.begin(), segments_.end(), row,
      [](Row wanted, const OrderSegment& segment) { return wanted < segment.first_row; });
  return *std::prev(after);
}

PartitionId VertexOrder::OwnerOf(Row row) const {
  if (grouped_) return SegmentOf(row).owner;
  return static_cast<PartitionId>(owner_of_row_[static_cast<std::size_t>(row)]);
}

TypeId VertexOrder::TypeOf(Row row) const {
  if (grouped_) return SegmentOf(row).type;
  return type_of_row_.empty() ? TypeId{0}
                              : static_cast<TypeId>(type_of_row_[static_cast<std::size_t>(row)]);
}

}  // namespace internal
}  // namespace rhizome
