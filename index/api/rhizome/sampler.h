#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Time stamps of edges, in any unit, for one snapshot of a graph.
/// Threads: const functions may be called from many threads.
class EdgeTimes {
 public:
  virtual ~EdgeTimes() = default;

  /// Returns the times of partition p's edges, by edge id (EdgeId::position).
  virtual std::span<const std::int64_t> OfPartition(std::uint32_t p) const = 0;

  /// Returns the times of the delta's edges, by their position in its lists of a direction, kIn or
  /// kOut (DeltaView); empty if there are none.
  virtual std::span<const std::int64_t> OfDelta(Direction) const { return {}; }

  /// Returns the times of the entries of partition p's lists of a direction, by position, if times
  /// are stored in this form. Empty: times are stored by edge id (OfPartition).
  virtual std::span<const std::int64_t> OfEntries(std::uint32_t, Direction) const { return {}; }
};

/// Reads the times from an edge attribute of the store (int64; ingested as a column of the edge
/// files), including the times of the delta's edges. For a live graph, use one Snapshot for this
/// function and for the sampler.
/// Errors: kNotFound, no such attribute; kInvalidArgument, not int64; any error of reading.
Result<std::shared_ptr<const EdgeTimes>> LoadEdgeTimes(const GraphSnapshot& graph,
                                                       std::string_view attribute);

/// Returns times of the edges that a sampler of `direction` traverses, computed from an array of
/// the vertices' times, int64 or int32 with one column. An edge has the time of the neighbour that
/// it leads to, so that no neighbour later than the seed is drawn. Vertices without a row have the
/// time 0.
/// Memory: 8 bytes an edge and direction, and 8 a vertex during the call.
/// Errors: kNotFound, no such array; kInvalidArgument, another type, or a direction that the store
/// does not keep; any error of reading.
Result<std::shared_ptr<const EdgeTimes>> LoadVertexTimes(const GraphSnapshot& graph,
                                                         std::string_view array,
                                                         Direction direction);

/// A fanout that selects the whole neighbourhood.
inline constexpr std::int64_t kAllNeighbors = -1;

/// The largest fanout that a sampler accepts: it fits in 31 bits.
inline constexpr std::int64_t kMaxFanout = (std::int64_t{1} << 31) - 1;

/// The vertices for which a hop draws neighbours.
enum class Frontier : std::uint8_t {
  /// The vertices found in the hop before, so that every vertex is expanded once (pyg-lib).
  kOnce,
  /// All vertices known so far, including the seeds; every hop draws again for each (DGL and
  /// GraphBolt, where the source vertices of one block are the target vertices of the next).
  kAgain,
};

/// The choice of a temporal sampler among the edges up to the seed's time.
enum class TemporalPick : std::uint8_t {
  kUniform,  ///< any, with equal probability
  kLast,     ///< the latest; ties are broken at random
};

/// Options of Sampler::Create.
struct SamplerOptions {
  /// Number of neighbours to draw in each hop; fanouts[0] is for the seeds. Empty: no hop, only the
  /// seeds.
  std::vector<std::int64_t> fanouts = {};

  /// The lists to traverse. Message passing uses in-edges. kBoth: the list of a vertex is its
  /// out-list followed by its in-list, as Graph::Neighbors returns it (a self-loop is in both); a
  /// symmetric graph has one list for both. The store must keep the traversed lists.
  Direction direction = Direction::kIn;

  /// Draw with replacement: a vertex with neighbours then always yields the full fanout.
  bool replace = false;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// Alternative to `fanouts`: typed_fanouts[hop][edge type], shape [hops, edge types of the
  /// graph]; 0 ignores edges of the type. The edges of a vertex are drawn type by type.
  std::vector<std::vector<std::int64_t>> typed_fanouts = {};

  /// With `fanouts`: the edge type that each hop follows (a meta-path), shape [hops]; empty: all
  /// types together.
  std::vector<TypeId> meta_path = {};

  /// Draw in proportion to the edges' weights: without replacement by A-ES (Efraimidis and
  /// Spirakis, 2006: the largest keys u^(1/w)), with replacement independently. Edges of weight 0
  /// are never drawn, not even with kAllNeighbors.
  bool weighted = false;

  /// Sample a separate subgraph for each seed; no two share a vertex (PyG's `disjoint`).
  bool disjoint = false;
  Frontier frontier = Frontier::kOnce;

  /// Replace the drawn edges by all edges between the vertices that were found (PyG's `induced`),
  /// of every type and weight, once each. Not with `disjoint` or Frontier::kAgain.
  bool induced = false;

  /// Temporal sampling: draw only edges that are not later than the seed's time (seed_times of
  /// Sampler::Sample). The times belong to the edges (LoadEdgeTimes) or to the drawn vertices
  /// (LoadVertexTimes). Requires `disjoint`.
  std::shared_ptr<const EdgeTimes> times = nullptr;
  TemporalPick temporal_pick = TemporalPick::kUniform;

  /// With both directions of a graph that is not symmetric, number the types of the two directions
  /// separately: an edge of an out-list has its type plus the number of edge types. `types` is then
  /// filled even if the graph has one edge type.
  bool types_by_side = false;

  /// Fill SampledSubgraph::edges. With both directions, an edge has the same id in either list.
  bool edge_ids = false;
};

/// A sampled k-hop subgraph. Vertices have local numbers in order of discovery: the distinct seeds
/// first (in a disjoint sample, all seeds as given), then hop by hop. Edges are grouped by hop, and
/// within a hop by the vertex for which they were drawn.
struct SampledSubgraph {
  std::vector<Row> rows;  ///< by local number; distinct, within one seed's subgraph if disjoint

  /// The vertices found in hop h are [hop_offsets[h], hop_offsets[h + 1]); hop 0 has the seeds.
  std::vector<std::uint64_t> hop_offsets;  ///< [hops + 2]

  /// Local number of each seed, in the order given (seeds may repeat): [seeds].
  std::vector<std::int64_t> seed_locals;

  /// CSR over local numbers: list r is neighbors[offsets[r] .. offsets[r + 1]). Frontier::kOnce:
  /// list v has the draws for vertex v; the vertices of the last hop are not expanded, so their
  /// lists are empty. Frontier::kAgain: list hop_lists[h] + v has the draws of hop h for vertex v,
  /// with v < hop_offsets[h + 1]. Induced: list v has the neighbours of vertex v in the sample, for
  /// every vertex, and all lists count as lists of the first hop (at least one hop is required).
  std::vector<std::uint64_t> offsets;    ///< [lists + 1]; kOnce: [rows.size() + 1]
  std::vector<std::int64_t> neighbors;   ///< local numbers
  std::vector<TypeId> types;             ///< parallel to neighbors; empty with one edge type
  std::vector<float> weights;            ///< parallel to neighbors; empty without weights
  std::vector<EdgeId> edges;             ///< parallel to neighbors; empty unless asked for. Edges
                                         ///< written since the generation have the partition
                                         ///< Graph::partition_count(), and count from 0 there in
                                         ///< the order of their commits
  std::vector<std::uint64_t> hop_lists;  ///< [hops + 1]: lists [hop_lists[h], hop_lists[h + 1])

  /// Disjoint: by local number, the index of the seed whose subgraph has the vertex. Otherwise
  /// empty.
  std::vector<std::uint32_t> seed_of;  ///< by local number

  /// Returns the vertex for which a list of hop h was drawn.
  std::uint64_t VertexOfList(std::size_t hop, std::uint64_t list, Frontier frontier) const {
    return frontier == Frontier::kOnce ? list : list - hop_lists[hop];
  }
};

/// A subgraph to sample. The spans are borrowed for the call.
struct SampleRequest {
  std::span<const VertexId> seeds = {};
  std::span<const std::int64_t> seed_times = {};  ///< of a temporal sampler: the time of each seed
  std::uint64_t batch = 0;                        ///< selects the random numbers

  /// Pairs of vertices. The edges between the two ends are left out, in either direction and of any
  /// type (VertexPair::type is ignored); nothing is reached through them. They are dropped after
  /// drawing, so a vertex may have fewer neighbours than the fanout.
  std::span<const VertexPair> left_out = {};
};

/// Receives the subgraph of the request with this index; it may be moved from.
using SampleSink = std::function<Status(std::size_t request, SampledSubgraph& subgraph)>;

/// One drawn entry of a partition's array of neighbours. A sampler that traverses both directions
/// of a graph that is not symmetric requests entries of out-lists with their partition, and entries
/// of in-lists with their partition + Graph::partition_count() + 1.
struct EntryRef {
  std::uint64_t position = 0;  ///< in the partition's array of the sampled direction
  LocalId local = 0;           ///< the vertex whose list it is in
  PartitionId partition = 0;
};

/// The source of neighbours for a sampler: lists in memory, plain or compressed, or on disk behind
/// a cache. Offsets, degrees, types and weights always come from Graph's partitions; a source
/// provides only the neighbours. Neighbours of the delta's edges come from its view.
/// Threads: LookUp may be called from many threads at once.
class NeighborSource {
 public:
  virtual ~NeighborSource() = default;

  /// Sets rows[i] to the row of the neighbour at entries[i]. Both spans have the same length.
  /// Entries may be in any order, and repeated, but entries of one list are mostly adjacent.
  /// Errors: any error of reading; the sample then fails with it.
  virtual Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const = 0;

  /// If true, a sampler sweeps over the lists: it calls LookUp for many lists at once, in ascending
  /// order of rows, from a few threads, so that a source on disk can coalesce its reads. If false,
  /// it calls LookUp chunk by chunk from all its threads, while the entries are in the processor's
  /// cache.
  virtual bool wants_whole_hops() const { return false; }
};

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
  /// (rhizome/sampler.h; see EntryRef for both directions), created for the current
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

  /// As above, without the edges between the two ends of any pair in `left_out`
  /// (SampleRequest::left_out). Errors: also kInvalidArgument, an end out of range.
  Status SampleInto(std::span<const VertexId> seeds, std::span<const std::int64_t> seed_times,
                    std::uint64_t batch, std::span<const VertexPair> left_out,
                    SampledSubgraph& out) const;

  /// Samples several subgraphs, each as SampleInto does, and passes them to `sink` in order. If the
  /// lists are on disk, each hop of all subgraphs is drawn in one sweep over the lists, which reads
  /// fewer bytes the more subgraphs there are.
  /// Memory: all subgraphs of the call are in memory at once, and the draws of a hop: about 20
  /// bytes an edge and 30 a vertex. Lists in memory: one subgraph at a time.
  /// Errors: as SampleInto; errors of `sink`, which end the call.
  /// Source: AGNES processes a block of the disk for all minibatches of a hyperbatch. Draws are
  /// keyed by vertex here, so that the order of the sweep does not affect them.
  Status SampleTogether(std::span<const SampleRequest> requests, const SampleSink& sink) const;

 private:
  class Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
