#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rhizome/index/delta_rows.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns how many of `rows`, shape [n, dim], have a value that is NaN or infinite.
std::uint64_t CountNonFinite(std::span<const float> rows, std::size_t dim);

/// The rows of an array that have a value that is NaN or infinite, without those of deleted
/// vertices.
struct NonFiniteRows {
  std::uint64_t rows = 0;
  std::optional<VertexId> first;  ///< the lowest id among their vertices
};

/// Finds them by reading all rows, a chunk in memory at a time; an array of integers has none.
/// `array` has its rows in the order of the generation. `delta`: its later changes (DeltaRows::Of),
/// or null. Errors: those of reading; kInterrupted.
Result<NonFiniteRows> FindNonFinite(const GraphSnapshot& graph, const ChunkArray& array,
                                    const DeltaRows* delta, const JobControl& control);

/// Finds those of an array of the graph's store, with its changes up to the snapshot. Errors: also
/// kNotFound.
Result<NonFiniteRows> FindNonFinite(const GraphSnapshot& graph, std::string_view array,
                                    const JobControl& control);

}  // namespace internal
}  // namespace rhizome
