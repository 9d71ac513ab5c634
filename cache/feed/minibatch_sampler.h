#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rhizome/cache/minibatch.h"
#include "rhizome/cache/policy.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The distinct seed vertices of a minibatch, in order. Equal `key`s draw equal neighbours.
struct SeedBatch {
  std::uint64_t tag = 0;  ///< passed through to Minibatch::tag
  std::uint64_t key = 0;
  std::vector<VertexId> vertices;
};

struct MinibatchSamplerOptions {
  SamplerOptions sampler;   ///< not temporal
  bool no_edges = false;    ///< take the seeds alone
  bool degrees = false;     ///< fill Minibatch::degrees (GCN)
  bool edge_facts = false;  ///< fill Minibatch::types and weights, where the graph has them
};

/// Draws the subgraph of a minibatch; its features are read later.
/// Threads: one at a time.
/// Ownership: `graph` must outlive it.
class MinibatchSampler {
 public:
  /// `neighbors` reads the in-lists; null means from `graph`, in memory.
  /// Errors: those of Sampler::Create.
  static Result<MinibatchSampler> Create(const GraphSnapshot& graph,
                                         const MinibatchSamplerOptions& options,
                                         std::shared_ptr<const NeighborSource> neighbors);

  /// Errors: kInvalidArgument, a vertex out of range, or more than 2^32 edges in one minibatch;
  /// those of reading lists.
  Result<Minibatch> Sample(const SeedBatch& seeds) const;

 private:
  MinibatchSampler(const GraphSnapshot& graph, MinibatchSamplerOptions options)
      : graph_(&graph), options_(std::move(options)) {}
  Result<Minibatch> FromSubgraph(SampledSubgraph subgraph) const;
  Status FillDegrees(Minibatch& minibatch) const;

  const GraphSnapshot* graph_;
  MinibatchSamplerOptions options_;
  std::unique_ptr<Sampler> sampler_;  // null without edges
};

/// The distinct rows that a minibatch asks for, by first use, and which of them each vertex has:
/// parts of a disjoint sample share rows.
struct DistinctRows {
  std::vector<Row> rows;
  std::vector<std::uint32_t> row_of;  ///< by local number
};
DistinctRows DistinctRowsOf(const Minibatch& minibatch);

/// Adds what a minibatch asks of a cache to a trace.
void AddStep(const Minibatch& minibatch, Trace& trace);

/// Edges of the vertex at `row` in the whole graph that a sampler of `direction` walks, capped at
/// 2^32 - 1.
Result<std::uint32_t> DegreeOfRow(const GraphSnapshot& graph, Row row, Direction direction);

/// The in-degrees of all rows, for who asks often. Works on the compute threads. Memory: 4 bytes a
/// vertex.
Result<std::vector<std::uint32_t>> InDegrees(const GraphSnapshot& graph);

}  // namespace internal
}  // namespace rhizome
