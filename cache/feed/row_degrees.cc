#include "cache/feed/row_degrees.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "cache/job/compute_threads.h"
#include "index/delta/delta_view.h"
#include "index/delta/graph_parts.h"
#include "index/sample/sampled_directions.h"
#include "index/sample/sampler_lists.h"
#include "index/sample/sampler_plan.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph_lookup.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMaxDegree = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kRowsOfTask = std::size_t{1} << 14;
constexpr std::size_t kListsAtOnce = 256;  // looked up together so that their cache misses overlap

/// Calls body(first, last) for ranges that cover all rows, on the compute threads. Returns the
/// first failure.
Status ForRows(std::size_t rows, const std::function<Status(std::size_t, std::size_t)>& body) {
  std::vector<Status> results((rows + kRowsOfTask - 1) / kRowsOfTask);
  ComputeFor(results.size(), [&](std::size_t task) {
    results[task] = body(task * kRowsOfTask, std::min(rows, (task + 1) * kRowsOfTask));
  });
  for (const Status& status : results) RHIZOME_RETURN_IF_ERROR(status);
  return Status::Ok();
}

bool IsWeight(float weight) { return weight >= 0 && std::isfinite(weight); }

Status NotAWeight(float weight, const std::string& place) {
  return Status::InvalidArgument(
      fmt::format("{}: an edge has the weight {}; layers need weights that are finite and not "
                  "negative; change them, or use `edge_weights=false`",
                  place, weight));
}

/// Adds the edge weights of rows [first, first + sums.size()) in one direction to `sums`.
void AddWeights(const GraphSnapshot& graph, const DeltaView* view, const ListFinder& finder,
                Direction direction, std::size_t first, std::span<double> sums) {
  std::array<Row, kListsAtOnce> rows;
  std::array<VertexList, kListsAtOnce> lists;
  for (std::size_t done = 0; done < sums.size(); done += kListsAtOnce) {
    const std::size_t count = std::min(kListsAtOnce, sums.size() - done);
    for (std::size_t i = 0; i < count; ++i) rows[i] = static_cast<Row>(first + done + i);
    finder.FindAll(std::span(rows).first(count), std::span(lists).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t begin = 0;
      for (const Piece& piece : lists[i].pieces()) {
        const std::uint64_t last = piece.first + piece.end - begin;
        begin = piece.end;
        const bool added = view != nullptr && piece.partition == view->partition();
        for (std::uint64_t e = piece.first; e < last; ++e) {
          sums[done + i] +=
              static_cast<double>(added ? view->weights(direction)[e]
                                        : graph.partition(piece.partition).Weight(direction, e));
        }
      }
    }
  }
}

}  // namespace

Result<std::uint32_t> DegreeOfRow(const GraphSnapshot& graph, Row row, Direction direction) {
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, graph.VertexAt(row));
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, graph.Degree(vertex, direction));
  return static_cast<std::uint32_t>(std::min(degree, kMaxDegree));
}

Result<std::vector<std::uint32_t>> DegreesOfRows(const GraphSnapshot& graph, Direction direction) {
  std::vector<std::uint32_t> degrees(graph.vertex_count());
  RHIZOME_RETURN_IF_ERROR(
      ForRows(degrees.size(), [&](std::size_t first, std::size_t last) -> Status {
        for (std::size_t row = first; row < last; ++row) {
          RHIZOME_ASSIGN_OR_RETURN(degrees[row],
                                   DegreeOfRow(graph, static_cast<Row>(row), direction));
        }
        return Status::Ok();
      }));
  return degrees;
}

Result<std::uint64_t> SumOfDegrees(const GraphSnapshot& graph, Direction direction,
                                   std::uint32_t most) {
  std::atomic<std::uint64_t> sum = 0;
  RHIZOME_RETURN_IF_ERROR(
      ForRows(graph.vertex_count(), [&](std::size_t first, std::size_t last) -> Status {
        std::uint64_t of_rows = 0;
        for (std::size_t row = first; row < last; ++row) {
          RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t degree,
                                   DegreeOfRow(graph, static_cast<Row>(row), direction));
          of_rows += std::min(degree, most);
        }
        sum += of_rows;
        return Status::Ok();
      }));
  return sum.load();
}

Result<std::vector<float>> WeightedDegrees(const GraphSnapshot& graph, Direction direction) {
  if (!graph.info().weighted)
    return Fail(Status::InvalidArgument("the graph has no edge weights to add"));
  RHIZOME_RETURN_IF_ERROR(CheckDirection(graph.info(), direction));
  RHIZOME_RETURN_IF_ERROR(CheckEdgeWeights(graph));
  RHIZOME_ASSIGN_OR_RETURN(const auto view, graph.delta_view());
  const WalkedSides sides(graph, direction);
  std::vector<ListFinder> finders;
  finders.reserve(sides.count());
  for (std::size_t side = 0; side < sides.count(); ++side)
    finders.emplace_back(graph, view, sides.direction(side));
  std::vector<float> degrees(graph.vertex_count());
  RHIZOME_RETURN_IF_ERROR(ForRows(degrees.size(), [&](std::size_t first, std::size_t last) {
    std::vector<double> sums(last - first, 0.0);
    for (std::size_t side = 0; side < sides.count(); ++side)
      AddWeights(graph, view.get(), finders[side], sides.direction(side), first, sums);
    for (std::size_t i = 0; i < sums.size(); ++i) degrees[first + i] = static_cast<float>(sums[i]);
    return Status::Ok();
  }));
  return degrees;
}

Status CheckEdgeWeights(const GraphSnapshot& graph) {
  if (!graph.info().weighted) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckWhole("a check of all weights"));
  // Visits each edge once, in the direction where its id equals its position.
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& partition = graph.partition(p);
    const Direction direction = partition.has(Direction::kOut) ? Direction::kOut : Direction::kIn;
    for (std::uint64_t e = 0; e < partition.edge_count(); ++e) {
      const float weight = partition.Weight(direction, e);
      if (!IsWeight(weight)) return NotAWeight(weight, fmt::format("partition {}", p));
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto view, graph.delta_view());
  if (view == nullptr) return Status::Ok();
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    for (const float weight : view->weights(direction))
      if (!IsWeight(weight)) return NotAWeight(weight, "an edge written since the generation");
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
