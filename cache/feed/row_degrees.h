#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the number of edges of the vertex at `row`, in the whole graph, that a sampler of
/// `direction` walks. Capped at 2^32 - 1.
Result<std::uint32_t> DegreeOfRow(const GraphSnapshot& graph, Row row, Direction direction);

/// Returns the degrees of all rows, for callers that need many. Runs on the compute threads.
/// Memory: 4 bytes per vertex. Errors: kInvalidArgument, the store does not keep that direction.
Result<std::vector<std::uint32_t>> DegreesOfRows(const GraphSnapshot& graph, Direction direction);

/// Returns the sum over all rows of the smaller of the row's degree and `most`. Runs on the compute
/// threads. Errors: as DegreesOfRows.
Result<std::uint64_t> SumOfDegrees(const GraphSnapshot& graph, Direction direction,
                                   std::uint32_t most);

/// Returns the sum of the weights of those edges for every row. Weights are added in double
/// precision in list order, and the sum is rounded once. Runs on the compute threads. Memory: 4
/// bytes per vertex. Errors: as DegreesOfRows; kInvalidArgument, the graph has no weights; as
/// CheckEdgeWeights.
Result<std::vector<float>> WeightedDegrees(const GraphSnapshot& graph, Direction direction);

/// Checks, in one pass over all edges, the weights that layers multiply with. Errors:
/// kInvalidArgument, a weight is negative or not finite.
Status CheckEdgeWeights(const GraphSnapshot& graph);

}  // namespace internal
}  // namespace rhizome
