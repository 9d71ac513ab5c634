#pragma once

#include <cstdint>

#include "rhizome/cache/minibatch.h"
#include "rhizome/gnn/model_shape.h"

namespace rhizome::inline internal {

/// What a training takes for such a minibatch beside the minibatch itself, in bytes: activations
/// and gradients of the step, and what libtorch and the allocator take when they first work.
std::uint64_t StepBytes(const Minibatch& minibatch, const ModelShape& shape);

}  // namespace rhizome::inline internal
