#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/edge_times.h"
#include "rhizome/export.h"
#include "rhizome/graph_types.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

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

}  // namespace rhizome
