#pragma once

#include <cstdint>

#include "rhizome/cache/minibatch.h"
#include "rhizome/gnn/model.h"

namespace rhizome::inline internal {

/// Returns the bytes that a training takes for such a minibatch beside the minibatch itself:
/// activations and gradients of the step, and the memory that libtorch and the allocator take when
/// they first work.
std::uint64_t StepBytes(const Minibatch& minibatch, const Model& model);

/// Returns the same of a training on a device: the host packs what goes up, of two minibatches.
std::uint64_t StagingBytes(const Minibatch& minibatch);

}  // namespace rhizome::inline internal
