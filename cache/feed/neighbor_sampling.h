#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// The neighbours that are drawn along edges of one type.
struct TypedFanouts {
  std::string type;                   ///< a name, or kOtherTypes
  std::vector<std::int64_t> fanouts;  ///< [hops], the seeds' own first; 0: none, kAllNeighbors: all
};

/// Stands for the edge types that are not named.
inline constexpr std::string_view kOtherTypes = "default";

/// How training and inference draw the neighbours of a layer: what SamplerOptions
/// (index/sampler_options.h) has, by names of the store.
/// Threads: a value.
struct NeighborSampling {
  /// The lists that are walked. kBoth: those of both directions, as one; in an undirected store
  /// they are the same.
  Direction direction = Direction::kIn;

  /// Draw in proportion to the edges' weights (SamplerOptions::weighted).
  bool weighted = false;

  /// Fanouts by edge type, instead of one for all. Types without an entry are not walked.
  std::vector<TypedFanouts> typed_fanouts = {};

  /// The edge type that each hop walks, the seeds' own first; empty: all types.
  std::vector<std::string> meta_path = {};

  /// Draw only edges that are not later than their seed: the edge attribute that has the times of
  /// edges, and the array, int64 or int32 with one column, that has those of vertices as seeds.
  /// Both or neither.
  std::string time_attribute = {};
  std::string seed_times = {};
};

/// Returns the hops that `sampling` draws, or 0 if it leaves them to plain fanouts.
std::size_t HopsOf(const NeighborSampling& sampling);

/// Returns the edge type of a name. Errors: kNotFound, naming those that the graph has.
Result<TypeId> FindEdgeType(const GraphSnapshot& graph, std::string_view name);

/// Describes what is not the default, in words that are the same for the same draws; empty if
/// nothing is: "out-edges and in-edges; by weight".
std::string DescribeSampling(const NeighborSampling& sampling);

}  // namespace rhizome
