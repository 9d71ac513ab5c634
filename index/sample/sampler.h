#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace rhizome {

class NeighborSource;

/// A fanout of this value takes the whole neighbourhood.
inline constexpr std::int64_t kAllNeighbors = -1;

/// The largest fanout that a sampler takes.
inline constexpr std::int64_t kMaxFanout = (std::int64_t{1} << 31) - 1;

/// Which vertices a hop draws neighbours for.
enum class Frontier : std::uint8_t {
  /// Those found in the hop before: every vertex is expanded once (pyg-lib).
  kOnce,
  /// All that are known so far, the seeds among them, drawing anew in every hop (DGL and GraphBolt,
  /// where the source vertices of one block are the target vertices of the next).
  kAgain,
};

/// Which edges a temporal sampler takes of those that are not too late.
enum class TemporalPick : std::uint8_t {
  kUniform,  ///< any
  kLast,     ///< the latest; among equally late ones, any
};

/// Time stamps of edges, in any unit, of one snapshot of a graph.
/// Threads: const functions may be called from many threads.
class EdgeTimes {
 public:
  virtual ~EdgeTimes() = default;

  /// The times of partition p's edges, by edge id (EdgeId::position).
  virtual std::span<const std::int64_t> OfPartition(std::uint32_t p) const = 0;

  /// Those of the edges that were written since the generation, by their position in the delta's
  /// lists of a direction, kIn or kOut (DeltaView); empty where nothing was.
  virtual std::span<const std::int64_t> OfDelta(Direction) const { return {}; }
};

/// Time stamps held in memory: one vector a partition.
class EdgeTimesInMemory final : public EdgeTimes {
 public:
  /// `delta_out`, `delta_in`: those of the delta by direction; a symmetric graph has `delta_out`
  /// alone.
  explicit EdgeTimesInMemory(std::vector<std::vector<std::int64_t>> times,
                             std::vector<std::int64_t> delta_out = {},
                             std::vector<std::int64_t> delta_in = {}, bool symmetric = false)
      : times_(std::move(times)),
        delta_out_(std::move(delta_out)),
        delta_in_(std::move(delta_in)),
        symmetric_(symmetric) {}
  std::span<const std::int64_t> OfDelta(Direction direction) const override {
    return direction == Direction::kOut || symmetric_ ? delta_out_ : delta_in_;
  }
  std::span<const std::int64_t> OfPartition(std::uint32_t p) const override {
    return p < times_.size() ? std::span<const std::int64_t>(times_[p])
                             : std::span<const std::int64_t>();
  }

 private:
  std::vector<std::vector<std::int64_t>> times_;
  std::vector<std::int64_t> delta_out_;
  std::vector<std::int64_t> delta_in_;
  bool symmetric_ = false;
};

/// Reads the times from an edge attribute of the store (int64; ingested as a column of the edge
/// files), those of the edges written since among them. Of a live graph, take a Snapshot for this
/// and for the sampler. Errors: kNotFound, no such attribute; kInvalidArgument, not int64; those of
/// reading.
Result<std::shared_ptr<const EdgeTimes>> LoadEdgeTimes(const Graph& graph,
                                                       std::string_view attribute);

struct SamplerOptions {
  /// Neighbours to draw in each hop; the first number is for the seeds themselves.
  std::vector<std::int64_t> fanouts = {};

  /// kIn or kOut: which lists are walked. Message passing walks in-edges.
  Direction direction = Direction::kIn;

  /// Draw with replacement (a vertex with neighbours then always yields the full fanout).
  bool replace = false;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// Instead of `fanouts`: typed_fanouts[hop][edge type], one number for each edge type of the
  /// graph; 0 walks no edge of the type. A vertex's edges are drawn type by type.
  std::vector<std::vector<std::int64_t>> typed_fanouts = {};

  /// With `fanouts`: the edge type that each hop walks (a meta-path); empty: all together.
  std::vector<TypeId> meta_path = {};

  /// Draw in proportion to the edges' weights: without replacement by the law of A-ES (Efraimidis
  /// and Spirakis, 2006: the largest keys u^(1/w)), with replacement independently. Edges of weight
  /// 0 are never drawn, not even by kAllNeighbors.
  bool weighted = false;

  /// Each seed gets a subgraph of its own: no vertex is shared between two (PyG's `disjoint`).
  bool disjoint = false;
  Frontier frontier = Frontier::kOnce;

  /// Temporal sampling: only edges that are not later than the seed's time (SeedTimes below).
  /// Needs `disjoint`.
  std::shared_ptr<const EdgeTimes> times = nullptr;
  TemporalPick temporal_pick = TemporalPick::kUniform;

  /// Fill SampledSubgraph::edges.
  bool edge_ids = false;
};

/// A sampled k-hop subgraph. Vertices are numbered locally in order of discovery: the distinct
/// seeds first (a disjoint sample: all seeds, as given), then hop by hop. Edges are grouped by hop
/// and by the vertex they were drawn for.
struct SampledSubgraph {
  std::vector<Row> rows;  ///< by local number; distinct, or within one seed's subgraph if disjoint

  /// Vertices found in hop h are [hop_offsets[h], hop_offsets[h + 1]); hop 0 holds the seeds.
  std::vector<std::uint64_t> hop_offsets;  ///< [hops + 2]

  /// Local number of each seed as it was given (seeds may repeat).
  std::vector<std::int64_t> seed_locals;

  /// CSR over local numbers: list r holds neighbors[offsets[r] .. offsets[r + 1]).
  /// Frontier::kOnce: list v is what was drawn for vertex v; those of the last hop are not
  /// expanded and have none. Frontier::kAgain: list hop_lists[h] + v is what hop h drew for vertex
  /// v, which is below hop_offsets[h + 1].
  std::vector<std::uint64_t> offsets;    ///< [lists + 1]; kOnce: [rows.size() + 1]
  std::vector<std::int64_t> neighbors;   ///< local numbers
  std::vector<TypeId> types;             ///< parallel to neighbors; empty for one edge type
  std::vector<float> weights;            ///< parallel to neighbors; empty without weights
  std::vector<EdgeId> edges;             ///< parallel to neighbors; empty unless asked for. Edges
                                         ///< written since the generation have the partition
                                         ///< Graph::partition_count() and their position in the
                                         ///< delta's lists of the direction that was sampled
  std::vector<std::uint64_t> hop_lists;  ///< [hops + 1]: lists [hop_lists[h], hop_lists[h + 1])

  /// Disjoint: whose subgraph a vertex is in, an index into the seeds as given. Else empty.
  std::vector<std::uint32_t> seed_of;  ///< by local number

  /// The vertex that a list of hop h was drawn for.
  std::uint64_t VertexOfList(std::size_t hop, std::uint64_t list, Frontier frontier) const {
    return frontier == Frontier::kOnce ? list : list - hop_lists[hop];
  }
};

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
