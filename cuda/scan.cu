#include <cub/device/device_scan.cuh>

#include "cuda/scan.h"

namespace rhizome::cuda {

std::size_t ExclusiveSumBytes(std::uint32_t count) {
  std::size_t bytes = 0;
  const std::uint32_t* const from = nullptr;
  std::uint32_t* const to = nullptr;
  cub::DeviceScan::ExclusiveSum(nullptr, bytes, from, to, static_cast<std::int64_t>(count));
  return bytes;
}

void ExclusiveSum(cudaStream_t stream, void* scratch, std::size_t bytes, const std::uint32_t* from,
                  std::uint32_t* to, std::uint32_t count) {
  cub::DeviceScan::ExclusiveSum(scratch, bytes, from, to, static_cast<std::int64_t>(count), stream);
}

}  // namespace rhizome::cuda
