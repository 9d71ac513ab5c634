// Multilevel partitioning of rows. Coarsen clusters the vertices level by level until the graph is
// small; DivideSmallGraph divides the coarsest graph; Uncoarsen projects the homes back, refining
// them on each level. Further V-cycles repeat this with clusters inside the homes found so far.

#include "index/homes/home_partitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "index/homes/home_clusters.h"
#include "index/homes/home_graph.h"
#include "index/homes/home_refinement.h"
#include "index/homes/initial_homes.h"
#include "index/partition/partition_balance.h"
#include "storage/base/exceptions.h"

namespace rhizome {
namespace {

/// The coarsest graph has about kCoarsestPerHome vertices for each home, but at least kSmallest.
constexpr std::uint32_t kCoarsestPerHome = 40;
constexpr std::uint32_t kSmallest = 400;

/// A cluster has at most 1 / kClustersPerHome of a home's share.
constexpr std::uint64_t kClustersPerHome = 16;

/// Coarsening ends if a level keeps more than this share of the vertices.
constexpr double kStalled = 0.95;

constexpr int kCycles = 5;

class Multilevel {
 public:
  Multilevel(HomeGraph graph, const HomeOptions& options, const JobControl& control)
      : options_(options), control_(control) {
    levels_.push_back({std::move(graph), {}});
  }

  Result<std::vector<PartitionId>> Run() {
    std::vector<PartitionId> home_of;
    for (int cycle = 0; cycle < kCycles; ++cycle) {
      cycle_ = cycle;
      RHIZOME_RETURN_IF_ERROR(Coarsen(home_of));
      if (cycle == 0)
        home_of = DivideSmallGraph(levels_.back().graph, options_.homes, options_.max_balance,
                                   options_.seed);
      RHIZOME_RETURN_IF_ERROR(Uncoarsen(home_of));
    }
    return home_of;
  }

 private:
  struct Level {
    HomeGraph graph;
    std::vector<std::uint32_t> cluster_of;  // [vertices] the vertex in the next coarser level
  };

  std::uint64_t NextSeed() { return options_.seed + 0x9e3779b97f4a7c15ull * ++draws_; }

  /// Adds coarser levels. If `home_of` is not empty, it is converted from homes of the finest
  /// vertices to homes of the coarsest vertices.
  Status Coarsen(std::vector<PartitionId>& home_of) {
    const std::uint32_t enough = std::max(kSmallest, kCoarsestPerHome * options_.homes);
    const HomeLoad total = levels_.front().graph.total();
    const std::uint64_t pieces = kClustersPerHome * options_.homes;
    const HomeLoad cap = {std::max<std::uint64_t>(total.rows / pieces, 1),
                          std::max<std::uint64_t>(total.seeds / pieces, 1)};
    while (levels_.back().graph.vertex_count() > enough) {
      RHIZOME_RETURN_IF_ERROR(Report("coarsening"));
      Level& fine = levels_.back();
      HomeClusters clusters = ClusterVertices(fine.graph, cap, home_of, NextSeed());
      if (clusters.count > kStalled * fine.graph.vertex_count()) break;
      HomeGraph coarse = fine.graph.Contract(clusters.cluster_of, clusters.count);
      if (!home_of.empty()) {
        std::vector<PartitionId> of_clusters(clusters.count);
        for (std::size_t v = 0; v < home_of.size(); ++v)
          of_clusters[clusters.cluster_of[v]] = home_of[v];
        home_of = std::move(of_clusters);
      }
      fine.cluster_of = std::move(clusters.cluster_of);
      levels_.push_back({std::move(coarse), {}});
    }
    return Status::Ok();
  }

  /// Projects the homes of the coarsest vertices back to the finest level, refining them on each
  /// level.
  Status Uncoarsen(std::vector<PartitionId>& home_of) {
    while (true) {
      RHIZOME_RETURN_IF_ERROR(Report("refining"));
      const HomeGraph& graph = levels_.back().graph;
      HomeRefinement(graph, EqualCaps(graph, options_.homes, options_.max_balance), home_of,
                     NextSeed())
          .Run();
      if (levels_.size() == 1) return Status::Ok();
      levels_.pop_back();
      const std::vector<std::uint32_t> cluster_of = std::move(levels_.back().cluster_of);
      std::vector<PartitionId> of_vertices(cluster_of.size());
      for (std::size_t v = 0; v < cluster_of.size(); ++v) of_vertices[v] = home_of[cluster_of[v]];
      home_of = std::move(of_vertices);
    }
  }

  Status Report(std::string_view phase) const {
    return control_.Report(
        {.phase = phase, .done = static_cast<std::uint64_t>(cycle_), .total = kCycles});
  }

  const HomeOptions options_;
  const JobControl& control_;
  std::vector<Level> levels_;  // finest level first
  std::uint64_t draws_ = 0;
  int cycle_ = 0;
};

Status CheckOptions(const HomeOptions& options) {
  if (options.homes == 0 || options.homes > kMaxPartitions) {
    return Status::InvalidArgument(
        fmt::format("{} homes; there must be 1 to {}", options.homes, kMaxPartitions));
  }
  if (!(options.max_balance >= 1) || !std::isfinite(options.max_balance)) {
    return Status::InvalidArgument(
        fmt::format("a balance of {} between homes; it must be at least 1", options.max_balance));
  }
  return Status::Ok();
}

// Measured with R-MAT graphs and debian_packages: the finest level takes 8 bytes an edge and 12 a
// vertex; its refinement and the largest coarser level take the rest.
constexpr std::uint64_t kBytesPerEdge = 56;
constexpr std::uint64_t kBytesPerVertex = 80;

}  // namespace

std::uint64_t DivideRowsBytes(std::uint64_t vertices, std::uint64_t edges, std::uint32_t homes) {
  const std::uint64_t table =
      homes <= 1 ? 0 : MostTableEntries(vertices, 2 * edges, homes) * sizeof(std::uint32_t);
  return edges * kBytesPerEdge + vertices * kBytesPerVertex + table;
}

Result<std::vector<PartitionId>> DivideRows(const PartitionInput& input,
                                            std::span<const VertexId> seeds,
                                            const HomeOptions& options,
                                            const JobControl& control) try {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  RHIZOME_ASSIGN_OR_RETURN(HomeGraph graph, HomeGraph::Create(input, seeds));
  if (options.homes == 1 || graph.vertex_count() == 0)
    return std::vector<PartitionId>(graph.vertex_count());
  return Multilevel(std::move(graph), options, control).Run();
} catch (...) {
  return Fail(StatusOfException());
}

Result<HomeMetrics> MeasureHomes(const PartitionInput& input, std::span<const VertexId> seeds,
                                 std::span<const PartitionId> home_of, std::uint32_t homes) try {
  if (home_of.size() != input.vertex_count()) {
    return Fail(Status::InvalidArgument(
        fmt::format("{} homes were given for {} vertices; give one for each", home_of.size(),
                    input.vertex_count())));
  }
  std::vector<std::uint64_t> rows(homes);
  std::vector<std::uint64_t> of_seeds(homes);
  for (const PartitionId home : home_of) {
    if (home >= homes)
      return Fail(Status::InvalidArgument(fmt::format("home {} is not below {}", home, homes)));
    ++rows[home];
  }
  RHIZOME_RETURN_IF_ERROR(CheckSeeds(seeds, home_of.size()));
  for (const VertexId seed : seeds) ++of_seeds[home_of[static_cast<std::size_t>(seed)]];
  std::uint64_t cut = 0;
  std::uint64_t edges = 0;
  RHIZOME_RETURN_IF_ERROR(input.ForEach([&](std::uint64_t, std::uint64_t src, std::uint64_t dst) {
    if (src == dst) return;
    ++edges;
    if (home_of[src] != home_of[dst]) ++cut;
  }));
  return HomeMetrics{
      .cut_share = edges == 0 ? 0 : static_cast<double>(cut) / static_cast<double>(edges),
      .row_balance = Balance(rows),
      .seed_balance = Balance(of_seeds)};
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
