#pragma once

#include <optional>

#include "cache/job/safetensors.h"
#include "rhizome/graph_types.h"

namespace rhizome {
inline namespace internal {

/// Key of the direction in which a model was trained, in the metadata of its safetensors file:
/// "out" or "both". If it is absent, the model was trained on in-edges, or written before files had
/// it.
inline constexpr const char* kDirectionMetadataKey = "direction";

/// Sets the direction of a model file.
void SetDirection(Direction direction, TensorFile& file);

/// Returns the direction of a model file; nullopt if it has none, or an unknown one.
std::optional<Direction> DirectionOf(const TensorFile& file);

}  // namespace internal
}  // namespace rhizome
