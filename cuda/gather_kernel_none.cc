#include "rhizome/cuda/gather_kernel.h"

// Replaces gather.cu in a build without nvcc.
#ifndef RHIZOME_HAS_CUDA

namespace rhizome::cuda {

bool DeviceAvailable() { return false; }

KernelOutcome GatherRows(const std::byte*, std::size_t, std::size_t, const std::int64_t*,
                         std::size_t, std::byte*) {
  return {KernelOutcome::Kind::kNoDevice, "built without nvcc"};
}

}  // namespace rhizome::cuda

#endif
