#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/cache/neighbor_sampling.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The properties of a graph that a job uses.
struct UsedFacts {
  const NeighborSampling& sampling;
  bool edge_weights = false;                ///< in its layers
  std::span<const VertexId> training = {};  ///< those that it learns from; none: an inference
};

/// Lists, in words, the properties of a graph's vertices and edges that a job does not use: types,
/// weights, edge attributes (times among them), and, in a directed graph, the direction that it
/// does not walk, with the share of the training vertices that have no edge of the other, and what
/// to do. Empty if nothing is ignored. Errors: those of Graph::Degree.
Result<std::vector<std::string>> IgnoredFacts(const GraphSnapshot& graph, const UsedFacts& used);

/// Tells `note` what is ignored, in a sentence, if there is anything and `note` is not empty.
void TellIgnored(const std::vector<std::string>& ignored,
                 const std::function<void(std::string_view)>& note);

}  // namespace rhizome::inline internal
