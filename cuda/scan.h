#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

// CUB's scan, in a file of its own: it takes most of the time that nvcc needs.

namespace rhizome::cuda {

std::size_t ExclusiveSumBytes(std::uint32_t count);

/// Queues to[i] = from[0] + ... + from[i - 1]. `scratch` has `bytes` of ExclusiveSumBytes.
void ExclusiveSum(cudaStream_t stream, void* scratch, std::size_t bytes, const std::uint32_t* from,
                  std::uint32_t* to, std::uint32_t count);

}  // namespace rhizome::cuda
