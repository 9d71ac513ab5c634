#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/index/edge_times.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

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

}  // namespace rhizome
