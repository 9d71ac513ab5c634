#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "index/delta/delta_view.h"
#include "index/delta/graph_parts.h"
#include "index/sample/sampled_directions.h"
#include "index/sample/sampler_plan.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph_scan.h"
#include "rhizome/sampler.h"
#include "storage/array/array_facts.h"
#include "storage/base/exceptions.h"

namespace rhizome {
namespace {

/// Times of entries by their position in the lists of each traversed direction.
class NeighborTimes final : public EdgeTimes {
 public:
  std::span<const std::int64_t> OfPartition(std::uint32_t) const override { return {}; }
  std::span<const std::int64_t> OfDelta(Direction direction) const override {
    return of_side(direction).delta;
  }
  std::span<const std::int64_t> OfEntries(std::uint32_t p, Direction direction) const override {
    const Side& side = of_side(direction);
    return p < side.partitions.size() ? std::span<const std::int64_t>(side.partitions[p])
                                      : std::span<const std::int64_t>();
  }

  /// Fills in the lists of a direction. `times` has the times of the vertices, by row.
  Status Add(const GraphSnapshot& graph, Direction direction, std::span<const std::int64_t> times) {
    Side& side = sides_[direction == Direction::kOut ? 0 : 1];
    for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
      const Adjacency& partition = graph.partition(p);
      std::vector<std::int64_t>& entries = side.partitions.emplace_back(partition.edge_count());
      std::vector<LocalId> scratch;
      for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
        const auto local = static_cast<LocalId>(v);
        RHIZOME_ASSIGN_OR_RETURN(const auto list, partition.FetchList(local, direction, scratch));
        const std::uint64_t first = partition.Entries(local, direction).first;
        for (std::size_t i = 0; i < list.size(); ++i)
          entries[first + i] = times[static_cast<std::size_t>(partition.RowOf(list[i]))];
      }
    }
    RHIZOME_ASSIGN_OR_RETURN(const auto view, graph.delta_view());
    if (view == nullptr) return Status::Ok();
    for (const Row row : view->rows(direction))
      side.delta.push_back(times[static_cast<std::size_t>(row)]);
    return Status::Ok();
  }

 private:
  struct Side {
    std::vector<std::vector<std::int64_t>> partitions;
    std::vector<std::int64_t> delta;
  };
  const Side& of_side(Direction direction) const {
    return sides_[direction == Direction::kOut ? 0 : 1];
  }
  std::array<Side, 2> sides_;
};

/// Returns the times of all vertices by row.
Result<std::vector<std::int64_t>> TimesByRow(const GraphSnapshot& graph, std::string_view array) {
  RHIZOME_ASSIGN_OR_RETURN(ArrayScan scan, ArrayScan::Open(graph, array));
  const ArrayEntry& entry = scan.entry();
  const bool wide = entry.dtype == DataType::kInt64;
  if ((!wide && entry.dtype != DataType::kInt32) || entry.dim != 1)
    return Fail(Status::InvalidArgument(fmt::format(
        "array '{}' does not hold times of vertices: it must be int64 or int32 with one column",
        array)));
  if (NullOf(entry.attributes))
    return Fail(Status::InvalidArgument(fmt::format(
        "array '{}' does not hold times of vertices: some vertices have none (null)", array)));
  const auto parts = graph.parts();
  std::vector<std::int64_t> times(graph.vertex_count(), 0);
  const std::size_t bytes = entry.row_bytes();
  ArrayScan::Block block;
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const bool more, scan.Next(std::size_t{1} << 16, block));
    if (!more) return times;
    for (std::size_t i = 0; i < block.vertices.size(); ++i) {
      std::int64_t time = 0;
      std::int32_t narrow = 0;
      std::memcpy(wide ? static_cast<void*>(&time) : &narrow, block.rows.data() + i * bytes, bytes);
      times[static_cast<std::size_t>(parts->RowOf(block.vertices[i]))] = wide ? time : narrow;
    }
  }
}

}  // namespace

Result<std::shared_ptr<const EdgeTimes>> LoadVertexTimes(const GraphSnapshot& live,
                                                         std::string_view array,
                                                         Direction direction) try {
  const auto graph = live.Snapshot();
  RHIZOME_RETURN_IF_ERROR(CheckDirection(graph->info(), direction));
  RHIZOME_RETURN_IF_ERROR(graph->parts()->CheckWhole("a table of the times of neighbours"));
  RHIZOME_ASSIGN_OR_RETURN(const auto times, TimesByRow(*graph, array));
  auto made = std::make_shared<NeighborTimes>();
  const WalkedSides sides(*graph, direction);
  for (std::size_t side = 0; side < sides.count(); ++side)
    RHIZOME_RETURN_IF_ERROR(made->Add(*graph, sides.direction(side), times));
  return made;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
