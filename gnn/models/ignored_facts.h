#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The properties of a graph that a job uses.
struct UsedFacts {
  const NeighborSampling& sampling;
  bool edge_weights = false;                ///< whether its layers use them
  bool vertex_types = false;                ///< whether its layers use them
  bool edge_types = false;                  ///< whether its layers have weights for each type
  std::span<const VertexId> training = {};  ///< training vertices; empty for an inference
};

/// Describes the properties of a graph's vertices and edges that a job does not use: types,
/// weights, edge attributes (including times) and, in a directed graph, the direction that it does
/// not walk, with the share of training vertices that have no edge in the walked direction, and a
/// remedy. Empty if nothing is ignored. Errors: see Graph::Degree.
Result<std::vector<std::string>> IgnoredFacts(const GraphSnapshot& graph, const UsedFacts& used);

/// Sends a sentence about the ignored properties to `note`, if there are any and `note` is not
/// empty.
void ReportIgnored(const std::vector<std::string>& ignored,
                   const std::function<void(std::string_view)>& note);

}  // namespace internal
}  // namespace rhizome
