#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "index/graph/delta_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the number of `rows`, shape [n, dim], with a NaN or infinite value.
std::uint64_t CountNonFinite(std::span<const float> rows, std::size_t dim);

/// Rows of an array with a NaN or infinite value, except rows of deleted vertices.
struct NonFiniteRows {
  std::uint64_t rows = 0;
  std::optional<VertexId> first;  ///< lowest id of their vertices
};

/// Finds non-finite rows by reading all rows, with one chunk in memory at a time; integer arrays
/// have none. The rows of `array` are in the order of the generation. `delta`: its later changes
/// (DeltaRows::Of), or null. Errors: any error of reading; kInterrupted.
Result<NonFiniteRows> FindNonFinite(const GraphSnapshot& graph, const ChunkArray& array,
                                    const DeltaRows* delta, const JobControl& control);

/// As above, for an array of the graph's store, with its changes up to the snapshot. `inputs`: the
/// array of each vertex type of the graph, so that only vertices whose type has this array count;
/// empty: all vertices. Errors: also kNotFound.
Result<NonFiniteRows> FindNonFinite(const GraphSnapshot& graph, std::string_view array,
                                    const JobControl& control,
                                    std::span<const FeatureInput> inputs = {});

}  // namespace internal
}  // namespace rhizome
