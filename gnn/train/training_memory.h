#pragma once

#include <cstdint>

#include "gnn/models/model.h"
#include "gnn/train/device_feed.h"
#include "rhizome/loader.h"

namespace rhizome {
inline namespace internal {

/// Returns the memory of a training step on such a minibatch, without the minibatch itself:
/// activations and gradients, and the memory that libtorch and the allocator reserve at first use.
std::uint64_t StepBytes(const Minibatch& minibatch, const Model& model);

/// Returns the expected DeviceFeed::host_bytes for such minibatches, whose rows need not have been
/// read.
std::uint64_t DeviceHostBytes(const Minibatch& minibatch, const Model& model,
                              const DeviceFeedOptions& device);

/// As StepBytes for training on a device, where activations are in device memory. The host needs
/// DeviceHostBytes and the transposed lists of the minibatches in flight.
std::uint64_t StagingBytes(const Minibatch& minibatch, const Model& model,
                           const DeviceFeedOptions& device);

}  // namespace internal
}  // namespace rhizome
