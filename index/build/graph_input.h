#pragma once

#include "rhizome/index/graph_builder.h"

namespace rhizome::inline internal {

/// Checks everything that BuildGeneration relies on: lengths of columns, ranges of ids and types,
/// that no weight is NaN, names, shapes of arrays. Errors: kInvalidArgument.
Status CheckGraphInput(const GraphInput& input, const BuildOptions& options);

/// Returns the array's entry in the manifest. Errors: kInvalidArgument, a bad name, dtype or shape.
Result<ArrayEntry> DescribeArray(const ArrayInput& array, std::uint64_t rows,
                                 std::uint64_t array_id);

}  // namespace rhizome::inline internal
