#pragma once

#include <vector>

#include "rhizome/index/graph_builder.h"

namespace rhizome::inline internal {

/// Checks everything that BuildGeneration relies on: lengths of columns, ranges of ids and types,
/// that no weight is NaN, names, shapes of arrays, homes that are given. Errors: kInvalidArgument.
Status CheckGraphInput(const GraphInput& input, const BuildOptions& options);

/// Returns the array's entry in the manifest. Errors: kInvalidArgument, a bad name, dtype or shape.
Result<ArrayEntry> DescribeArray(const ArrayInput& array, std::uint64_t rows,
                                 std::uint64_t array_id);

/// Returns the training vertices, in order: those whose `split` is 0, if there is that array
/// (uint8, one column). Errors: kInvalidArgument, it can be read only while it is written; those of
/// reading it.
Result<std::vector<VertexId>> TrainingVertices(const GraphInput& input);

/// Makes the array that keeps `homes`, by vertex.
ArrayInput ArrayOfHomes(const StoredHomes& facts, std::vector<PartitionId> homes);

}  // namespace rhizome::inline internal
