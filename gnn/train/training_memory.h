#pragma once

#include <cstdint>

#include "rhizome/cache/minibatch.h"
#include "rhizome/gnn/device_feed.h"
#include "rhizome/gnn/model.h"

namespace rhizome::inline internal {

/// Returns the bytes that a training takes for such a minibatch beside the minibatch itself:
/// activations and gradients of the step, and the memory that libtorch and the allocator take when
/// they first work.
std::uint64_t StepBytes(const Minibatch& minibatch, const Model& model);

/// Returns the bytes that DeviceFeed::host_bytes comes to with such minibatches, whose rows need
/// not have been read.
std::uint64_t DeviceHostBytes(const Minibatch& minibatch, const Model& model,
                              const DeviceFeedOptions& device);

/// Returns the same as StepBytes of a training on a device, whose activations are there: of the
/// host are DeviceHostBytes, and the turned lists of the minibatches that are under way.
std::uint64_t StagingBytes(const Minibatch& minibatch, const Model& model,
                           const DeviceFeedOptions& device);

}  // namespace rhizome::inline internal
