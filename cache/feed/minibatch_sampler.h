#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/minibatch.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/index/sampler.h"

namespace rhizome {

/// The distinct seed vertices of a minibatch, in order. Equal `key`s draw equal neighbours.
struct SeedBatch {
  std::uint64_t tag = 0;  ///< passed through to Minibatch::tag
  std::uint64_t key = 0;
  std::vector<VertexId> vertices;
};

struct MinibatchSamplerOptions {
  /// one for each layer; the first draws the seeds' own neighbours
  std::vector<std::int64_t> fanouts;
  bool no_edges = false;  ///< take the seeds alone
  bool degrees = false;   ///< fill Minibatch::degrees (GCN)
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
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
  MinibatchSampler(const GraphSnapshot& graph, bool degrees) : graph_(&graph), degrees_(degrees) {}
  Status FillDegrees(Minibatch& minibatch) const;

  const GraphSnapshot* graph_;
  bool degrees_;
  std::unique_ptr<Sampler> sampler_;  // null without edges
};

/// Returns the in-degree of the vertex at `row` in the whole graph, capped at 2^32 - 1.
Result<std::uint32_t> InDegree(const GraphSnapshot& graph, Row row);

/// Returns the in-degrees of all rows, [rows], computed on the compute threads. Memory: 4 bytes a
/// vertex.
Result<std::vector<std::uint32_t>> InDegrees(const GraphSnapshot& graph);

}  // namespace rhizome
