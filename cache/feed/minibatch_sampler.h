#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rhizome/cache/minibatch.h"
#include "rhizome/cache/policy.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/neighbor_source.h"
#include "rhizome/index/sampler.h"

namespace rhizome::inline internal {

/// The distinct seed vertices of a minibatch, in order. Equal `key`s draw equal neighbours.
struct SeedBatch {
  std::uint64_t tag = 0;  ///< passed through to Minibatch::tag
  std::uint64_t key = 0;
  std::vector<VertexId> vertices;
  bool is_valid = false;  ///< drawn by MinibatchSamplerOptions::valid_sampler, if there is one

  /// A superbatch begins with it, even if the one before is not as long as it may be.
  bool begins_superbatch = false;
};

struct MinibatchSamplerOptions {
  SamplerOptions sampler;
  std::optional<SamplerOptions> valid_sampler = {};  ///< absent: as `sampler`
  bool no_edges = false;                             ///< take the seeds alone
  bool degrees = false;                              ///< fill Minibatch::degrees (GCN)
  bool edge_types = false;        ///< fill Minibatch::types, if the graph has several
  bool edge_weights = false;      ///< fill Minibatch::weights, if the graph has them
  bool weighted_degrees = false;  ///< fill Minibatch::weighted_degrees (GCN with weights)

  /// [rows] Times of vertices as seeds, if the sampler is temporal; else null.
  std::shared_ptr<const std::vector<std::int64_t>> seed_times = nullptr;
};

/// Draws the subgraph of a minibatch; its features are read later.
/// Threads: one at a time.
/// Ownership: `graph` must outlive it.
class MinibatchSampler {
 public:
  /// `neighbors` reads the lists that are walked; null means from `graph`, in memory.
  /// Errors: those of Sampler::Create and of WeightedDegrees.
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
  void FillWeightedDegrees(Minibatch& minibatch) const;
  Result<std::vector<std::int64_t>> TimesOf(const SeedBatch& seeds) const;

  const GraphSnapshot* graph_;
  MinibatchSamplerOptions options_;
  std::unique_ptr<Sampler> sampler_;        // null without edges
  std::unique_ptr<Sampler> valid_sampler_;  // null: sampler_
  std::vector<float> weighted_degrees_;     // [rows], if asked for
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

}  // namespace rhizome::inline internal
