#pragma once

#include <optional>
#include <string>

#include "rhizome/neighbor_sampling.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Adds the flags of `train` and `infer` that select the edges to follow and how: --direction,
/// --weighted, --typed-fanout, --meta-path, --time-attribute, --seed-times and --edge-weights. The
/// variables that they fill must outlive `verb`.
void AddNeighborFlags(CLI::App& verb, NeighborSampling& sampling,
                      std::optional<bool>& edge_weights);

/// Returns "in", "out" or "both".
const char* DirectionName(Direction direction);

/// Describes the edges that a job followed, from its fields `direction` and `edge_weights`. Empty
/// for the default, in-edges without weights.
std::string DescribeEdges(const Json& fields);

}  // namespace rhizome
