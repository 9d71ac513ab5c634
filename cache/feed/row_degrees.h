#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Edges of the vertex at `row` in the whole graph that a sampler of `direction` walks, capped at
/// 2^32 - 1.
Result<std::uint32_t> DegreeOfRow(const GraphSnapshot& graph, Row row, Direction direction);

/// The degrees of all rows, for who asks often. Works on the compute threads. Memory: 4 bytes a
/// vertex. Errors: kInvalidArgument, a direction that the store does not keep.
Result<std::vector<std::uint32_t>> Degrees(const GraphSnapshot& graph, Direction direction);

/// The sum of the weights of those edges, for every row: added in double, in the order of the list,
/// and rounded once. Works on the compute threads. Memory: 4 bytes a vertex. Errors: as Degrees;
/// kInvalidArgument, the graph has no weights; those of CheckEdgeWeights.
Result<std::vector<float>> WeightedDegrees(const GraphSnapshot& graph, Direction direction);

/// Checks the weights that layers multiply with, in a pass over all. Errors: kInvalidArgument, one
/// is negative or not finite.
Status CheckEdgeWeights(const GraphSnapshot& graph);

}  // namespace internal
}  // namespace rhizome
