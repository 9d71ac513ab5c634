// Reads a column of edges by their numbers. Weights, types and values of edges written since the
// generation are copied from memory; values of attributes in files are collected by partition and
// then read in one batch for each partition.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "index/delta/delta_view.h"
#include "index/delta/graph_parts.h"
#include "index/generation/graph_builder.h"
#include "index/topology/adjacency.h"
#include "index/topology/file_rows.h"
#include "rhizome/graph_lookup.h"
#include "storage/base/exceptions.h"

namespace rhizome {
namespace {

constexpr std::string_view kWeight = "weight";
constexpr std::string_view kType = "type";

template <typename T>
void StoreValue(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof(value));
}

/// Reads a column of the edges of one snapshot.
class EdgeColumnReader {
 public:
  EdgeColumnReader(const GraphSnapshot& graph, EdgeAttributeInfo column,
                   std::shared_ptr<const DeltaView> view)
      : graph_(graph),
        parts_(graph.parts()),
        numbers_(graph),
        column_(std::move(column)),
        row_bytes_(column_.dim * DataTypeBytes(column_.dtype)),
        of_files_(std::ranges::any_of(parts_->edge_attributes,
                                      [&](const auto& one) { return one.name == column_.name; })),
        view_(std::move(view)),
        targets_(parts_->partitions.size()) {}

  Status Read(std::span<const std::int64_t> edges, std::span<std::byte> out) {
    if (out.size() != edges.size() * row_bytes_)
      return Status::InvalidArgument(
          fmt::format("{} edges have {} bytes each, but the buffer has {} bytes", edges.size(),
                      row_bytes_, out.size()));
    for (std::size_t i = 0; i < edges.size(); ++i)
      RHIZOME_RETURN_IF_ERROR(ReadOne(edges[i], out.data() + i * row_bytes_));
    return ReadTargets();
  }

 private:
  std::uint64_t bound() const {
    return numbers_.generation_edges() + (view_ == nullptr ? 0 : view_->number_bound());
  }

  // Reads a value that is in memory, or records a read of a value that is in a file.
  Status ReadOne(std::int64_t number, std::byte* out) {
    if (static_cast<std::uint64_t>(number) >= bound())
      return Status::InvalidArgument(fmt::format(
          "there is no edge {}: the numbers of this graph's edges are below {}", number, bound()));
    RHIZOME_ASSIGN_OR_RETURN(const EdgeId edge, numbers_.At(number));
    if (edge.partition == parts_->partitions.size()) return ReadWritten(number, edge.position, out);
    const Adjacency& partition = parts_->partitions[edge.partition];
    if (!of_files_)
      RHIZOME_RETURN_IF_ERROR(parts_->CheckLoaded(edge.partition, "a weight or type of its edges"));
    if (of_files_)
      targets_[edge.partition].push_back({static_cast<std::int64_t>(edge.position), out});
    else if (column_.name == kWeight)
      StoreValue(partition.Weight(Direction::kOut, edge.position), out);
    else
      StoreValue(std::int64_t{partition.TypeOfEdge(edge.position)}, out);
    return Status::Ok();
  }

  Status ReadWritten(std::int64_t number, std::uint64_t written, std::byte* out) const {
    const auto place = view_->PlaceOf(written);
    if (!place) return Status::InvalidArgument(fmt::format("edge {} was deleted", number));
    const Direction direction = view_->place_direction();
    if (of_files_)
      StoreAttribute(written, out);
    else if (column_.name == kWeight)
      StoreValue(view_->weights(direction)[*place], out);
    else
      StoreValue(std::int64_t{view_->types(direction)[*place]}, out);
    return Status::Ok();
  }

  void StoreAttribute(std::uint64_t written, std::byte* out) const {
    const auto first = static_cast<std::uint32_t>(column_.first_value);
    for (std::uint32_t a = 0; a < column_.dim; ++a) {
      const std::int64_t value = view_->AttributeOf(written, first + a);
      std::byte* const to = out + a * DataTypeBytes(column_.dtype);
      if (column_.dtype == DataType::kInt64)
        StoreValue(value, to);
      else if (column_.dtype == DataType::kFloat64)
        StoreValue(std::bit_cast<double>(value), to);
      else
        StoreValue(static_cast<float>(std::bit_cast<double>(value)), to);
    }
  }

  Status ReadTargets() {
    for (std::size_t p = 0; p < targets_.size(); ++p) {
      if (targets_[p].empty()) continue;
      const std::string name = EdgeArrayName(column_.name, static_cast<std::uint32_t>(p));
      RHIZOME_ASSIGN_OR_RETURN(const auto rows, parts_->arrays->Of(graph_.store(), name));
      const ArrayEntry& entry = rows->entry();
      if (entry.rows != parts_->partitions[p].edge_count() || entry.dtype != column_.dtype ||
          entry.dim != column_.dim)
        return Status::Corruption(fmt::format("array '{}' does not have {} {} for each edge", name,
                                              column_.dim, DataTypeName(column_.dtype)));
      RHIZOME_RETURN_IF_ERROR(rows->Read(targets_[p]));
    }
    return Status::Ok();
  }

  const GraphSnapshot& graph_;
  const std::shared_ptr<const GraphParts> parts_;
  const EdgeNumbering numbers_;
  const EdgeAttributeInfo column_;
  const std::size_t row_bytes_;
  const bool of_files_;
  const std::shared_ptr<const DeltaView> view_;  // null: nothing was written since the generation
  std::vector<std::vector<RowTarget>> targets_;  // by partition
};

Result<EdgeAttributeInfo> FindIn(const std::vector<EdgeAttributeInfo>& columns,
                                 std::string_view name) {
  std::string names;
  for (const EdgeAttributeInfo& one : columns) {
    if (one.name == name) return one;
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return Fail(Status::NotFound(
      fmt::format("there is no edge attribute '{}'; existing attributes: {}", name, names)));
}

}  // namespace

std::vector<EdgeAttributeInfo> EdgeColumns(const Graph& graph) {
  const auto fixed = graph.Snapshot();
  std::vector<EdgeAttributeInfo> columns = fixed->edge_attributes();
  const auto add = [&](std::string_view name, DataType dtype) {
    if (std::ranges::none_of(columns, [&](const auto& one) { return one.name == name; }))
      columns.push_back({.name = std::string(name), .dtype = dtype});
  };
  if (fixed->info().weighted) add(kWeight, DataType::kFloat32);
  add(kType, DataType::kInt64);
  return columns;
}

Result<EdgeAttributeInfo> FindEdgeColumn(const Graph& graph, std::string_view name) try {
  return FindIn(EdgeColumns(graph), name);
} catch (...) {
  return Fail(StatusOfException());
}

Status ReadEdgeRows(const Graph& graph, std::string_view name, std::span<const std::int64_t> edges,
                    std::span<std::byte> out) try {
  const auto fixed = graph.Snapshot();
  RHIZOME_ASSIGN_OR_RETURN(EdgeAttributeInfo column, FindEdgeColumn(*fixed, name));
  RHIZOME_ASSIGN_OR_RETURN(auto view, fixed->delta_view());
  return EdgeColumnReader(*fixed, std::move(column), std::move(view)).Read(edges, out);
} catch (...) {
  return StatusOfException();
}

}  // namespace rhizome
