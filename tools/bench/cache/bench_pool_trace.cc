#include "tools/bench/cache/bench_pool_trace.h"

#include <vector>

#include "index/input/npy_header.h"
#include "index/topology/vertex_order.h"
#include "rhizome/sampler.h"
#include "storage/io/files.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

/// Returns the vertices of each owner that has any.
std::vector<std::vector<VertexId>> VerticesByOwner(const GraphSnapshot& graph) {
  std::vector<std::vector<VertexId>> owned(graph.partition_count());
  const VertexOrder& order = graph.order();
  const auto rows = static_cast<Row>(order.size());
  for (Row row = 0; row < rows; ++row) owned[order.OwnerOf(row)].push_back(order.VertexAt(row));
  std::erase_if(owned, [](const std::vector<VertexId>& vertices) { return vertices.empty(); });
  return owned;
}

/// Draws the seeds of minibatches. The seeds depend only on the number of the minibatch.
class SeedDrawer {
 public:
  SeedDrawer(const BenchPoolOptions& options, const GraphSnapshot& graph)
      : options_(options.graph), vertex_count_(graph.vertex_count()) {
    if (options.seeds == BenchSeeds::kGrouped) groups_ = VerticesByOwner(graph);
  }

  std::vector<VertexId> Draw(std::uint32_t batch) const {
    if (groups_.empty()) return DrawOf(vertex_count_, batch);
    const std::vector<VertexId>& group = groups_[batch % groups_.size()];
    std::vector<VertexId> seeds = DrawOf(group.size(), batch);
    for (VertexId& seed : seeds) seed = group[static_cast<std::size_t>(seed)];
    return seeds;
  }

 private:
  std::vector<VertexId> DrawOf(std::uint64_t count, std::uint32_t batch) const {
    return DrawSeeds(count, options_.batch_size, options_.seed, batch);
  }

  const BenchGraphOptions& options_;
  const std::uint64_t vertex_count_;
  std::vector<std::vector<VertexId>> groups_;  // empty: draw from all vertices
};

}  // namespace

Result<Trace> SampleTrace(const BenchPoolOptions& options, const GraphSnapshot& graph,
                          const JobControl& control, std::uint32_t first) {
  SamplerOptions sampling;
  sampling.fanouts = options.graph.fanouts;
  sampling.seed = options.graph.seed;
  sampling.threads = options.graph.threads;
  RHIZOME_ASSIGN_OR_RETURN(const auto sampler, Sampler::Create(graph, sampling));
  const SeedDrawer seeds(options, graph);
  Trace trace;
  for (std::uint32_t b = 0; b < options.superbatch; ++b) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "sample", .done = b, .total = options.superbatch}));
    RHIZOME_ASSIGN_OR_RETURN(const SampledSubgraph subgraph,
                             sampler->Sample(seeds.Draw(first + b), first + b));
    trace.AddStep(subgraph.rows);
  }
  return trace;
}

Status WriteTrace(const Trace& trace, const GraphSnapshot& graph, const std::string& path) {
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(path));
  const std::string header = NpyHeaderBytes(DataType::kInt64, trace.keys.size(), 2);
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(header))));
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    std::vector<std::int64_t> requests;
    requests.reserve(2 * trace.step(s).size());
    for (const CacheKey row : trace.step(s)) {
      requests.push_back(static_cast<std::int64_t>(s));
      requests.push_back(*graph.VertexAt(row));
    }
    RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(requests))));
  }
  return out.Commit();
}

}  // namespace rhizome
