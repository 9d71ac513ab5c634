#pragma once

#include <optional>
#include <vector>

#include "index/generation/graph_builder.h"

namespace rhizome {
inline namespace internal {

/// Checks the assumptions of BuildGeneration: lengths of columns, ranges of ids and types, no
/// weight is NaN, names, shapes of arrays, homes that are given.
/// Errors: kInvalidArgument.
Status CheckGraphInput(const GraphInput& input, const BuildOptions& options);

/// Returns the array's entry in the manifest. `chunk_rows`: see ChooseChunkRows.
/// Errors: kInvalidArgument, a bad name, dtype or shape.
Result<ArrayEntry> DescribeArray(const ArrayInput& array, std::uint64_t rows,
                                 std::uint64_t array_id,
                                 std::optional<std::uint64_t> chunk_rows = {});

/// Returns the training vertices in order: the vertices whose `split` is 0, if there is such an
/// array (uint8, one column).
/// Errors: kInvalidArgument, the array can be read only while it is written; any error of reading
/// it.
Result<std::vector<VertexId>> TrainingVertices(const GraphInput& input);

/// Returns the array that stores `homes`, by vertex.
ArrayInput ArrayOfHomes(const StoredHomes& facts, std::vector<PartitionId> homes);

}  // namespace internal
}  // namespace rhizome
