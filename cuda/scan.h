#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

// CUB's scan, in a separate file because it accounts for most of nvcc's compile time.

namespace rhizome::cuda {

/// Returns the scratch bytes that ExclusiveSum needs.
std::size_t ExclusiveSumBytes(std::uint32_t count);

/// Queues to[i] = from[0] + ... + from[i - 1]. `scratch` has `bytes` (ExclusiveSumBytes).
void ExclusiveSum(cudaStream_t stream, void* scratch, std::size_t bytes, const std::uint32_t* from,
                  std::uint32_t* to, std::uint32_t count);

}  // namespace rhizome::cuda
