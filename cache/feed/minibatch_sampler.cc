#include "rhizome/cache/minibatch_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "rhizome/cache/compute_threads.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxLocal = std::numeric_limits<std::uint32_t>::max();

/// Returns the seeds alone, as a subgraph without edges.
Result<Minibatch> SeedsOnly(const GraphSnapshot& graph, const SeedBatch& seeds) {
  Minibatch minibatch;
  for (const VertexId vertex : seeds.vertices) {
    RHIZOME_ASSIGN_OR_RETURN(const Row row, graph.RowOf(vertex));
    minibatch.rows.push_back(row);
  }
  minibatch.hop_offsets = {0, minibatch.rows.size()};
  minibatch.csr.offsets.assign(minibatch.rows.size() + 1, 0);
  return minibatch;
}

Result<Minibatch> FromSubgraph(SampledSubgraph subgraph) {
  if (subgraph.neighbors.size() > kMaxLocal) {
    return Fail(Status::InvalidArgument(
        fmt::format("a minibatch of {} edges; make the batch or the fanout smaller",
                    subgraph.neighbors.size())));
  }
  Minibatch minibatch;
  minibatch.rows = std::move(subgraph.rows);
  minibatch.hop_offsets = std::move(subgraph.hop_offsets);
  minibatch.csr.offsets.assign(subgraph.offsets.begin(), subgraph.offsets.end());
  minibatch.csr.neighbors.assign(subgraph.neighbors.begin(), subgraph.neighbors.end());
  return minibatch;
}

}  // namespace

Result<std::uint32_t> InDegree(const GraphSnapshot& graph, Row row) {
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, graph.VertexAt(row));
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, graph.Degree(vertex, Direction::kIn));
  return static_cast<std::uint32_t>(std::min(degree, kMaxLocal));
}

Result<std::vector<std::uint32_t>> InDegrees(const GraphSnapshot& graph) {
  constexpr std::size_t kRowsOfTask = std::size_t{1} << 14;
  std::vector<std::uint32_t> degrees(graph.vertex_count());
  const std::size_t tasks = (degrees.size() + kRowsOfTask - 1) / kRowsOfTask;
  std::vector<Status> results(tasks);
  ComputeFor(tasks, [&](std::size_t task) {
    const std::size_t last = std::min(degrees.size(), (task + 1) * kRowsOfTask);
    for (std::size_t row = task * kRowsOfTask; row < last && results[task].ok(); ++row) {
      const Result<std::uint32_t> degree = InDegree(graph, static_cast<Row>(row));
      if (degree) degrees[row] = *degree;
      if (!degree) results[task] = degree.error();
    }
  });
  for (const Status& status : results) RHIZOME_RETURN_IF_ERROR(status);
  return degrees;
}

Result<MinibatchSampler> MinibatchSampler::Create(const GraphSnapshot& graph,
                                                  const MinibatchSamplerOptions& options,
                                                  std::shared_ptr<const NeighborSource> neighbors) {
  MinibatchSampler made(graph, options.degrees);
  if (options.no_edges) return made;
  RHIZOME_ASSIGN_OR_RETURN(made.sampler_, Sampler::Create(graph,
                                                          {.fanouts = options.fanouts,
                                                           .direction = Direction::kIn,
                                                           .replace = false,
                                                           .seed = options.seed,
                                                           .threads = options.threads},
                                                          std::move(neighbors)));
  return made;
}

Result<Minibatch> MinibatchSampler::Sample(const SeedBatch& seeds) const {
  Minibatch minibatch;
  if (sampler_ == nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(minibatch, SeedsOnly(*graph_, seeds));
  } else {
    RHIZOME_ASSIGN_OR_RETURN(SampledSubgraph subgraph, sampler_->Sample(seeds.vertices, seeds.key));
    RHIZOME_ASSIGN_OR_RETURN(minibatch, FromSubgraph(std::move(subgraph)));
  }
  minibatch.tag = seeds.tag;
  minibatch.seed_count = minibatch.hop_offsets[1];
  if (degrees_) RHIZOME_RETURN_IF_ERROR(FillDegrees(minibatch));
  return minibatch;
}

Status MinibatchSampler::FillDegrees(Minibatch& minibatch) const {
  minibatch.degrees.assign(minibatch.rows.size(), 0);
  if (sampler_ == nullptr) return Status::Ok();  // without edges every degree is 0
  for (std::size_t i = 0; i < minibatch.rows.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(minibatch.degrees[i], InDegree(*graph_, minibatch.rows[i]));
  }
  return Status::Ok();
}

}  // namespace rhizome
