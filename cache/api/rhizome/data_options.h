#pragma once

#include <optional>
#include <string>

#include "rhizome/export.h"
#include "rhizome/graph_types.h"
#include "rhizome/neighbor_sampling.h"

namespace RHIZOME_API rhizome {

/// The part of a store that a model reads: its arrays, and the edges that it follows.
struct DataOptions {
  std::string features = "feat";  ///< array of input rows
  std::string labels = "label";   ///< array of classes or values
  std::string split = "split";    ///< array of sets, or NAME:K (ParseSplitReference)

  /// How neighbours are sampled. Fanouts by edge type (NeighborSampling::typed_fanouts) replace
  /// fanouts for all types.
  NeighborSampling sampling = {};

  /// Whether layers that sum or average use edge weights; default: if the store has weights.
  std::optional<bool> edge_weights = {};

  /// kDirect: adjacency lists remain on disk.
  TopologyPlace topology = TopologyPlace::kMemory;
};

}  // namespace rhizome
