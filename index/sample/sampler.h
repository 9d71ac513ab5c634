#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/index/graph.h"
#include "rhizome/index/sampler_options.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

class NeighborSource;

/// k-hop sampling by gather-apply over the partitions of a graph (GLISP III-C). Exact: positions
/// are drawn in the lists of all partitions of a vertex together, which gives each its share by the
/// multivariate hypergeometric law (multinomial with replacement), and keys of weighted draws are
/// compared over all of them, so that any partitioning gives the distribution of the whole graph.
/// Random numbers are counter-based, keyed by (seed, batch, hop, vertex id, edge type or seed's
/// index where they matter): the same seed and store give the same subgraph for any number of
/// threads.
///
/// What was written since the generation is sampled as one more partition (DeltaView), so that
/// every edge of the merged graph has the chance that it will have once it is compacted. A sampler
/// is of the moment it was made: a live graph moves on without it. A deleted vertex is found by no
/// edge; as a seed it is a vertex without edges.
///
/// Memory: 4 bytes a vertex for each concurrent call (disjoint: 16 bytes a sampled vertex);
/// weighted: 4.5 bytes an edge; temporal: 4 bytes an edge.
/// Threads: Sample may be called from many threads at once; it also uses options.threads itself.
/// Ownership: keeps a Snapshot of the graph, and so its generation.
class Sampler {
 public:
  /// `neighbors`: where the lists of options.direction are read (index/neighbor_source.h), made for
  /// the generation that `graph` has now; nullptr: from `graph`, in memory. Of a delta's entries it
  /// is not asked.
  /// Errors: kInvalidArgument, options out of range or that exclude each other; a direction the
  /// store lacks; a weighted sampler over a weight that is negative or not finite; time stamps that
  /// are not one an edge.
  static Result<std::unique_ptr<Sampler>> Create(
      const Graph& graph, const SamplerOptions& options,
      std::shared_ptr<const NeighborSource> neighbors = nullptr);
  ~Sampler();

  /// Errors: kInvalidArgument, a seed out of range, a batch too large to be numbered, a temporal
  /// sampler (which needs times); those of the NeighborSource.
  Result<SampledSubgraph> Sample(std::span<const VertexId> seeds, std::uint64_t batch) const;

  /// For a temporal sampler: seed_times[i] is the time of seeds[i].
  Result<SampledSubgraph> Sample(std::span<const VertexId> seeds,
                                 std::span<const std::int64_t> seed_times,
                                 std::uint64_t batch) const;

  /// As Sample, into memory that an earlier sample left: a loop allocates nothing after its first
  /// turns. After an error `out` is empty. `seed_times`: as above, empty for others.
  Status SampleInto(std::span<const VertexId> seeds, std::span<const std::int64_t> seed_times,
                    std::uint64_t batch, SampledSubgraph& out) const;

 private:
  class Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
