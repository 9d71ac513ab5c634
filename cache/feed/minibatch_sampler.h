#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cache/feed/left_out_degrees.h"
#include "cache/feed/row_types.h"
#include "rhizome/graph.h"
#include "rhizome/loader.h"
#include "rhizome/policy.h"
#include "rhizome/sampler.h"

namespace rhizome {
inline namespace internal {

/// The distinct seed vertices of a minibatch, in order. Equal `key`s draw equal neighbours.
struct SeedBatch {
  std::uint64_t tag = 0;  ///< passed through to Minibatch::tag
  std::uint64_t key = 0;
  std::vector<VertexId> vertices;
  bool is_valid = false;  ///< use MinibatchSamplerOptions::valid_sampler, if set

  /// Passed through to the minibatch. Their vertices are indices into `vertices`, which are the
  /// local numbers of the seeds.
  std::vector<MinibatchPair> pairs = {};
  std::array<std::vector<MinibatchNegatives>, 2> negatives = {};

  /// Leave out the edges between the two ends of each pair, in both directions and of any type: no
  /// neighbour is reached through them, and degrees do not count them.
  bool leave_out = false;

  /// Starts a new superbatch with this batch, even if the previous one could be longer.
  bool begins_superbatch = false;
};

struct MinibatchSamplerOptions {
  SamplerOptions sampler;
  std::optional<SamplerOptions> valid_sampler = {};  ///< absent: as `sampler`
  bool no_edges = false;                             ///< return the seeds without edges
  bool degrees = false;                              ///< fill Minibatch::degrees (GCN)
  bool edge_types = false;        ///< fill Minibatch::types, if the graph has several
  bool vertex_types = false;      ///< fill Minibatch::vertex_types, if the graph has several
  bool edge_weights = false;      ///< fill Minibatch::weights, if the graph has them
  bool weighted_degrees = false;  ///< fill Minibatch::weighted_degrees (GCN with weights)

  /// [rows] Time of each vertex as a seed, if the sampler is temporal; else null.
  std::shared_ptr<const std::vector<std::int64_t>> seed_times = nullptr;
};

/// Draws the subgraph of a minibatch, without features.
/// Threads: one at a time.
/// Ownership: `graph` must outlive it.
class MinibatchSampler {
 public:
  /// Creates a sampler. `neighbors` is the source of the walked lists; null: `graph`, in memory.
  /// Errors: as Sampler::Create and WeightedDegrees.
  static Result<MinibatchSampler> Create(const GraphSnapshot& graph,
                                         const MinibatchSamplerOptions& options,
                                         std::shared_ptr<const NeighborSource> neighbors);

  /// Draws the subgraph around the seeds. Errors: kInvalidArgument, a vertex out of range, or more
  /// than 2^32 edges in one minibatch; any error of reading lists.
  Result<Minibatch> Sample(const SeedBatch& seeds) const;

  /// Draws the subgraphs of several batches of seeds and passes them to `sink`, in order. Each is
  /// the same as by Sample. Lists on disk are read in one sweep a hop (Sampler::SampleTogether).
  /// Errors: as Sample; errors of `sink`, which end the call.
  Status SampleTogether(std::span<const SeedBatch> batches,
                        const std::function<Status(Minibatch&)>& sink) const;

 private:
  MinibatchSampler(const GraphSnapshot& graph, MinibatchSamplerOptions options)
      : graph_(&graph), options_(std::move(options)), row_types_(graph) {}
  const Sampler& SamplerOf(const SeedBatch& seeds) const {
    return seeds.is_valid && valid_sampler_ != nullptr ? *valid_sampler_ : *sampler_;
  }
  Result<Minibatch> FromSubgraph(const SeedBatch& seeds, SampledSubgraph subgraph) const;
  Status Complete(const SeedBatch& seeds, Minibatch& minibatch) const;
  Status LeaveOutOfDegrees(Minibatch& minibatch) const;
  Status FillDegrees(Minibatch& minibatch) const;
  void FillWeightedDegrees(Minibatch& minibatch) const;
  Result<std::vector<std::int64_t>> TimesOf(const SeedBatch& seeds) const;
  Status SampleRun(std::span<const SeedBatch> batches,
                   const std::function<Status(Minibatch&)>& sink) const;

  const GraphSnapshot* graph_;
  MinibatchSamplerOptions options_;
  RowTypes row_types_;
  std::unique_ptr<Sampler> sampler_;        // null without edges
  std::unique_ptr<Sampler> valid_sampler_;  // null: sampler_
  std::vector<float> weighted_degrees_;     // [rows], if requested
  std::shared_ptr<const NeighborSource> neighbors_;
  mutable std::unique_ptr<LeftOutDegrees> left_out_degrees_;  // null before its first use
};

/// The distinct rows that vertices request, in order of first use, and the row of each vertex.
/// Vertices in different parts of a disjoint sample can share a row.
struct DistinctRows {
  std::vector<Row> rows;
  std::vector<std::uint32_t> row_of;  ///< index into `rows`, by vertex
};
DistinctRows DistinctRowsOf(std::span<const Row> rows);

/// Adds the rows that a minibatch requests from a cache to a trace, as one step.
void AddStep(const Minibatch& minibatch, Trace& trace);

}  // namespace internal
}  // namespace rhizome
