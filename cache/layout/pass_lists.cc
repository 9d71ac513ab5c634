#include "cache/layout/pass_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "index/delta/graph_parts.h"
#include "index/topology/vertex_order.h"
#include "storage/base/exceptions.h"

namespace rhizome {
namespace {

/// Number of targets that are sampled at once. The draws do not depend on it.
constexpr std::size_t kSampledTargets = 4096;
constexpr LocalRow kUnknown = std::numeric_limits<LocalRow>::max();

PartitionId OwnerOf(const GraphSnapshot& graph, Row row) {
  const VertexOrder& order = graph.order();
  return static_cast<std::uint64_t>(row) < order.size() ? order.OwnerOf(row)
                                                        : graph.partition_count() - 1;
}

/// Graph rows that each target reads. They are renumbered locally once all of them are known.
struct RowLists {
  std::vector<std::uint64_t> offsets = {0};
  std::vector<LocalRow> neighbors;  // graph rows; they fit because vertex_count does
  std::vector<float> weights;       // if requested
};

Status Sample(const GraphSnapshot& graph, std::span<const Row> targets,
              const PassDrawOptions& options, const JobControl& control, RowLists& lists) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<Sampler> sampler,
                           Sampler::Create(graph, PassSampling(options), options.neighbors));
  const auto parts = graph.parts();
  std::vector<VertexId> seeds;
  SampledSubgraph drawn;
  for (std::size_t first = 0; first < targets.size(); first += kSampledTargets) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const auto part = targets.subspan(first, std::min(kSampledTargets, targets.size() - first));
    seeds.clear();
    for (const Row row : part) seeds.push_back(parts->VertexAt(row));
    RHIZOME_RETURN_IF_ERROR(sampler->SampleInto(seeds, {}, options.layer, drawn));
    for (std::size_t t = 0; t < part.size(); ++t) {
      for (std::uint64_t e = drawn.offsets[t]; e < drawn.offsets[t + 1]; ++e) {
        const auto local = static_cast<std::size_t>(drawn.neighbors[e]);
        lists.neighbors.push_back(static_cast<LocalRow>(drawn.rows[local]));
      }
      lists.offsets.push_back(lists.neighbors.size());
    }
    if (options.weights)
      lists.weights.insert(lists.weights.end(), drawn.weights.begin(), drawn.weights.end());
  }
  return Status::Ok();
}

/// Fills lists.rows and returns the local number of every row of the graph; kUnknown for rows that
/// are neither targets nor read.
std::vector<LocalRow> NumberRows(std::span<const Row> targets, std::uint64_t row_count,
                                 PassLists& lists) {
  std::vector<LocalRow> local_of(row_count, kUnknown);
  for (const Row row : targets) local_of[static_cast<std::size_t>(row)] = 0;
  for (const LocalRow row : lists.neighbors) local_of[row] = 0;
  for (std::size_t row = 0; row < row_count; ++row) {
    if (local_of[row] == kUnknown) continue;
    local_of[row] = static_cast<LocalRow>(lists.rows.size());
    lists.rows.push_back(static_cast<Row>(row));
  }
  return local_of;
}

}  // namespace

SamplerOptions PassSampling(const PassDrawOptions& draw) {
  SamplerOptions sampler{.direction = draw.direction,
                         .replace = false,
                         .seed = draw.seed,
                         .threads = draw.threads,
                         .weighted = draw.weighted,
                         .types_by_side = draw.relations > 0};
  if (draw.typed_fanout.empty()) {
    sampler.fanouts = {draw.fanout};
  } else {
    sampler.typed_fanouts = {draw.typed_fanout};
  }
  return sampler;
}

std::uint64_t MostEdgesOf(const PassDrawOptions& draw, std::uint64_t degree) {
  if (draw.no_edges) return 0;
  std::uint64_t most = 0;
  const auto add = [&](std::int64_t fanout) {
    most = fanout == kAllNeighbors ? degree
                                   : std::min(degree, most + static_cast<std::uint64_t>(fanout));
  };
  if (draw.typed_fanout.empty()) add(draw.fanout);
  for (const std::int64_t fanout : draw.typed_fanout) add(fanout);
  return most;
}

std::uint64_t MostEdgesOf(const PassDrawOptions& draw, const GraphSnapshot& graph) {
  const bool twice = draw.direction == Direction::kBoth && !graph.info().symmetric;
  const std::uint64_t all = graph.generation_edge_count() * (twice ? 2 : 1);
  const std::uint64_t of_one = MostEdgesOf(draw, all);
  return of_one == all ? all : std::min(all, graph.vertex_count() * of_one);
}

bool TakeSameLists(const PassDrawOptions& a, const PassDrawOptions& b) {
  if (a.no_edges || b.no_edges) return a.no_edges && b.no_edges;
  const auto all = [](const PassDrawOptions& draw) {
    if (draw.typed_fanout.empty()) return draw.fanout == kAllNeighbors;
    return std::all_of(draw.typed_fanout.begin(), draw.typed_fanout.end(),
                       [](std::int64_t fanout) { return fanout == kAllNeighbors || fanout == 0; });
  };
  return a.direction == b.direction && a.weighted == b.weighted &&
         a.typed_fanout == b.typed_fanout && all(a) && all(b);
}

std::vector<Row> TargetsOf(const GraphSnapshot& graph, PartitionId partition) {
  std::vector<Row> targets;
  const auto row_count = static_cast<Row>(graph.vertex_count());
  for (Row row = 0; row < row_count; ++row) {
    if (OwnerOf(graph, row) == partition) targets.push_back(row);
  }
  return targets;
}

// Draws the lists of a pass: (1) checks the targets; (2) samples their neighbours, as graph rows;
// (3) numbers all rows locally; (4) looks up vertex, owner and degree of each local row.
Result<PassLists> DrawPassLists(const GraphSnapshot& graph, std::span<const Row> targets,
                                const PassDrawOptions& options, const JobControl& control) try {
  if (graph.vertex_count() >= kUnknown) {
    return Fail(Status::InvalidArgument("a pass can have fewer than 2^32 - 1 vertices"));
  }
  for (const Row row : targets) {
    if (static_cast<std::uint64_t>(row) >= graph.vertex_count())
      return Fail(Status::InvalidArgument(
          fmt::format("there is no row {}: the graph has {} vertices", row, graph.vertex_count())));
  }
  RowLists drawn;
  if (options.no_edges) {
    drawn.offsets.assign(targets.size() + 1, 0);
  } else {
    RHIZOME_RETURN_IF_ERROR(Sample(graph, targets, options, control, drawn));
  }
  PassLists lists;
  lists.offsets = std::move(drawn.offsets);
  lists.neighbors = std::move(drawn.neighbors);
  lists.weights = std::move(drawn.weights);
  const std::vector<LocalRow> local_of = NumberRows(targets, graph.vertex_count(), lists);
  for (LocalRow& row : lists.neighbors) row = local_of[row];
  for (const Row row : targets) lists.targets.push_back(local_of[static_cast<std::size_t>(row)]);
  const bool has_out = graph.info().directions != Direction::kIn;
  const auto parts = graph.parts();
  for (const Row row : lists.rows) {
    const VertexId vertex = parts->VertexAt(row);
    lists.vertices.push_back(vertex);
    lists.owners.push_back(OwnerOf(graph, row));
    // A vertex is read on behalf of others once for each of its out-edges.
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree,
                             graph.Degree(vertex, has_out ? Direction::kOut : Direction::kIn));
    lists.degrees.push_back(degree);
  }
  return lists;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
