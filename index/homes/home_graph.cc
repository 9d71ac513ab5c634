// The graphs of the multilevel partitioner: Create builds the finest one from the input edges,
// Contract merges clusters into the vertices of the next coarser one, and Induce extracts a
// subgraph.

#include "index/homes/home_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMaxVertices = std::numeric_limits<std::uint32_t>::max() - 1;
// Weights of clusters are sums of edges in 32 bits.
constexpr std::uint64_t kMaxEdges = std::uint64_t{1} << 31;

Status CheckSize(const PartitionInput& input) {
  if (input.vertex_count() <= kMaxVertices && input.edge_count() < kMaxEdges) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "{} vertices and {} edges are too many to choose homes for: at most {} and {} are possible",
      input.vertex_count(), input.edge_count(), kMaxVertices, kMaxEdges - 1));
}

Result<std::vector<std::uint32_t>> MarkSeeds(std::uint64_t vertices,
                                             std::span<const VertexId> seeds) {
  RHIZOME_RETURN_IF_ERROR(CheckSeeds(seeds, vertices));
  std::vector<std::uint32_t> marks(vertices);
  for (const VertexId seed : seeds) {
    if (marks[static_cast<std::size_t>(seed)]++ != 0)
      return Fail(Status::InvalidArgument(fmt::format("seed {} is given twice", seed)));
  }
  return marks;
}

/// Lists the members of each cluster, cluster by cluster.
struct Members {
  Members(std::span<const std::uint32_t> cluster_of, std::uint32_t clusters)
      : begin(clusters + 1), vertices(cluster_of.size()) {
    for (const std::uint32_t c : cluster_of) ++begin[c];
    std::uint32_t at = 0;
    for (std::uint32_t& first : begin) at = first += at;
    for (std::uint32_t v = static_cast<std::uint32_t>(cluster_of.size()); v-- > 0;)
      vertices[--begin[cluster_of[v]]] = v;
  }
  std::span<const std::uint32_t> of(std::uint32_t c) const {
    return std::span(vertices).subspan(begin[c], begin[c + 1] - begin[c]);
  }
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> vertices;
};

}  // namespace

Status CheckSeeds(std::span<const VertexId> seeds, std::uint64_t vertices) {
  for (const VertexId seed : seeds) {
    if (seed < 0 || static_cast<std::uint64_t>(seed) >= vertices) {
      return Status::InvalidArgument(
          fmt::format("seed {} is not in the vertices [0, {})", seed, vertices));
    }
  }
  return Status::Ok();
}

Result<HomeGraph> HomeGraph::Create(const PartitionInput& input, std::span<const VertexId> seeds) {
  RHIZOME_RETURN_IF_ERROR(CheckSize(input));
  HomeGraph graph;
  RHIZOME_ASSIGN_OR_RETURN(graph.seeds_, MarkSeeds(input.vertex_count(), seeds));
  std::vector<std::uint64_t>& offsets = graph.offsets_;
  offsets.assign(static_cast<std::size_t>(input.vertex_count()) + 1, 0);
  RHIZOME_RETURN_IF_ERROR(input.ForEach([&](std::uint64_t, std::uint64_t src, std::uint64_t dst) {
    if (src == dst) return;
    ++offsets[src];
    ++offsets[dst];
  }));
  // Each offset is first the end of its list, and moves to the beginning while the list is filled.
  std::uint64_t end = 0;
  for (std::uint64_t& offset : offsets) end = offset += end;
  graph.neighbors_.resize(end);
  RHIZOME_RETURN_IF_ERROR(input.ForEach([&](std::uint64_t, std::uint64_t src, std::uint64_t dst) {
    if (src == dst) return;
    graph.neighbors_[--offsets[src]] = static_cast<std::uint32_t>(dst);
    graph.neighbors_[--offsets[dst]] = static_cast<std::uint32_t>(src);
  }));
  return graph;
}

HomeGraph HomeGraph::Contract(std::span<const std::uint32_t> cluster_of,
                              std::uint32_t clusters) const {
  RHIZOME_DCHECK(cluster_of.size() == vertex_count());
  const Members members(cluster_of, clusters);
  HomeGraph coarse;
  coarse.offsets_.reserve(clusters + std::size_t{1});
  std::vector<std::uint32_t> weight_to(clusters);  // weights of the edges of the current cluster
  std::vector<std::uint32_t> touched;
  for (std::uint32_t c = 0; c < clusters; ++c) {
    HomeLoad load;
    for (const std::uint32_t v : members.of(c)) {
      load += this->load(v);
      ForEachNeighbor(v, [&](std::uint32_t u, std::uint32_t weight) {
        const std::uint32_t other = cluster_of[u];
        if (other == c) return;
        if (weight_to[other] == 0) touched.push_back(other);
        weight_to[other] += weight;
      });
    }
    for (const std::uint32_t other : touched) {
      coarse.neighbors_.push_back(other);
      coarse.weights_.push_back(std::exchange(weight_to[other], 0));
    }
    touched.clear();
    coarse.offsets_.push_back(coarse.neighbors_.size());
    coarse.rows_.push_back(static_cast<std::uint32_t>(load.rows));
    coarse.seeds_.push_back(static_cast<std::uint32_t>(load.seeds));
  }
  coarse.neighbors_.shrink_to_fit();
  coarse.weights_.shrink_to_fit();
  return coarse;
}

HomeGraph HomeGraph::Induce(std::span<const std::uint32_t> vertices) const {
  constexpr std::uint32_t kOutside = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> number(vertex_count(), kOutside);
  for (std::uint32_t i = 0; i < vertices.size(); ++i) number[vertices[i]] = i;
  HomeGraph part;
  for (const std::uint32_t v : vertices) {
    ForEachNeighbor(v, [&](std::uint32_t u, std::uint32_t weight) {
      if (number[u] == kOutside) return;
      part.neighbors_.push_back(number[u]);
      part.weights_.push_back(weight);
    });
    part.offsets_.push_back(part.neighbors_.size());
    part.rows_.push_back(static_cast<std::uint32_t>(load(v).rows));
    part.seeds_.push_back(static_cast<std::uint32_t>(load(v).seeds));
  }
  return part;
}

HomeLoad HomeGraph::total() const {
  HomeLoad sum;
  for (std::uint32_t v = 0; v < vertex_count(); ++v) sum += load(v);
  return sum;
}

HomeLoad HomeGraph::largest() const {
  HomeLoad most;
  for (std::uint32_t v = 0; v < vertex_count(); ++v) {
    most.rows = std::max(most.rows, load(v).rows);
    most.seeds = std::max(most.seeds, load(v).seeds);
  }
  return most;
}

}  // namespace internal
}  // namespace rhizome
