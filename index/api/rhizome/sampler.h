#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/result.h"
#include "rhizome/sampler_options.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

class NeighborSource;

/// k-hop sampling by gather-apply over the partitions of a graph (GLISP section III-C). The
/// distribution is exact: any partitioning, and changes since the generation, yield the
/// distribution of the whole graph. The same seed and store yield the same subgraph with any number
/// of threads. A sampler works on a snapshot taken at its creation; later changes of a live graph
/// do not affect it. No edge leads to a deleted vertex; as a seed it has no edges.
///
/// Memory: 4 bytes a vertex for each concurrent call (disjoint: 16 bytes a sampled vertex);
/// weighted: 4.5 bytes an edge; temporal: 4 bytes an edge; twice that for both directions.
/// Threads: Sample may be called from many threads at once; it also uses options.threads itself.
/// Ownership: holds a Snapshot of the graph, and so its generation.
class Sampler {
 public:
  /// Creates a sampler. `neighbors` is the source of the lists of options.direction
  /// (rhizome/neighbor_source.h; see EntryRef for both directions), created for the current
  /// generation of `graph`; nullptr: the lists in memory. It receives no entries of the delta.
  /// Errors: kInvalidArgument, options out of range or mutually exclusive; a direction that the
  /// store lacks; a weighted sampler over a weight that is negative or not finite; not one time
  /// stamp for each edge.
  static Result<std::unique_ptr<Sampler>> Create(
      const Graph& graph, const SamplerOptions& options,
      std::shared_ptr<const NeighborSource> neighbors = nullptr);
  ~Sampler();

  /// Samples the subgraph of `seeds`; `batch` selects the random numbers.
  /// Errors: kInvalidArgument, a seed out of range, a batch too large to be numbered, a temporal
  /// sampler (which needs times); any error of the NeighborSource.
  Result<SampledSubgraph> Sample(std::span<const VertexId> seeds, std::uint64_t batch) const;

  /// Samples with a temporal sampler: seed_times[i] is the time of seeds[i].
  /// Errors: as above.
  Result<SampledSubgraph> Sample(std::span<const VertexId> seeds,
                                 std::span<const std::int64_t> seed_times,
                                 std::uint64_t batch) const;

  /// As Sample, but reuses the memory of an earlier sample, so that a loop stops allocating after
  /// its first iterations. After an error `out` is empty. `seed_times` is empty unless the sampler
  /// is temporal.
  Status SampleInto(std::span<const VertexId> seeds, std::span<const std::int64_t> seed_times,
                    std::uint64_t batch, SampledSubgraph& out) const;

 private:
  class Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
