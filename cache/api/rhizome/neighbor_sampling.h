#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/result.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Fanouts along edges of one type.
struct TypedFanouts {
  std::string type;                   ///< name of an edge type, or kOtherTypes
  std::vector<std::int64_t> fanouts;  ///< [hops], from the seeds on; 0: none, kAllNeighbors: all
};

/// Name that represents all edge types that are not listed.
inline constexpr std::string_view kOtherTypes = "default";

/// How training and inference sample the neighbours of a layer: like SamplerOptions
/// (rhizome/sampler_options.h), with names instead of ids.
/// Threads: a value type.
struct NeighborSampling {
  /// Which lists are walked. kBoth walks both directions as one list; in an undirected store they
  /// are the same.
  Direction direction = Direction::kIn;

  /// Draw in proportion to edge weights (SamplerOptions::weighted).
  bool weighted = false;

  /// Fanouts per edge type, instead of one fanout for all types. Types without an entry are not
  /// walked.
  std::vector<TypedFanouts> typed_fanouts = {};

  /// The edge type that each hop walks, starting at the seeds; empty: all types.
  std::vector<std::string> meta_path = {};

  /// Draw only edges that are not later than their seed. `time_attribute` is the edge attribute
  /// with the times of edges, `seed_times` an int64 or int32 array with one column that holds the
  /// times of vertices as seeds. Set both or neither.
  std::string time_attribute = {};
  std::string seed_times = {};
};

/// Returns the number of hops that `sampling` defines, or 0 if plain fanouts define it.
std::size_t HopsOf(const NeighborSampling& sampling);

/// Returns the edge type with this name. Errors: kNotFound, listing the types of the graph.
Result<TypeId> FindEdgeType(const GraphSnapshot& graph, std::string_view name);

/// Describes the options that differ from the default, such as "out-edges and in-edges; by weight";
/// empty if there are none. Options that draw the same edges have equal descriptions.
std::string DescribeSampling(const NeighborSampling& sampling);

}  // namespace rhizome
