#pragma once

#include <optional>
#include <string>

#include "rhizome/graph.h"

namespace rhizome {
inline namespace internal {

/// Searches the inputs of a training whose loss is not finite for values whose sums, products or
/// quotients leave float32: features, and edge weights if `weighted`. All of them are finite.
/// Returns a sentence that names the array, the column and the vertex, or the range of the weights,
/// and the remedy. Returns nullopt if no value is extreme, or the inputs cannot be read.
std::optional<std::string> ExtremeInputs(const GraphSnapshot& graph, const std::string& features,
                                         bool weighted);

}  // namespace internal
}  // namespace rhizome
